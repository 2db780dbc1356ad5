// interleave against a plain reference.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::ElementsAre;
using testing::HasSubstr;

// Inputs number 0, 1, 2, ... of these sizes; element i of input n is 100 n + i.
std::vector<Dataset> inputs(const std::vector<int32_t>& sizes, bool streams = false) {
  std::vector<Dataset> result;
  for (int32_t size : sizes) {
    const auto offset = static_cast<int32_t>(100 * result.size());
    result.push_back((streams ? generated(size) : numbers(size)).map([offset](const Element& e) {
      return scalar_element(value_of(e) + offset);
    }));
  }
  return result;
}

// What the header says, in other words: places that take turns, each with a list of what its input still has.
Numbers reference(const std::vector<int32_t>& sizes, size_t cycle, int32_t block) {
  std::vector<Numbers> waiting;
  for (size_t n = sizes.size(); n-- > 0;)
    waiting.push_back(range(static_cast<int32_t>(100 * n), static_cast<int32_t>(100 * n) + sizes[n]));
  std::vector<Numbers> places(std::min(cycle, sizes.size()));
  for (auto& place : places) {
    place = waiting.back();
    waiting.pop_back();
  }
  Numbers result;
  for (bool any = true; any;) {
    any = false;
    for (auto& place : places) {
      for (int32_t i = 0; i < block; ++i) {
        while (place.empty() && !waiting.empty()) {
          place = waiting.back();
          waiting.pop_back();
          i = 0;
        }
        if (place.empty()) break;
        any = true;
        result.push_back(place.front());
        place.erase(place.begin());
      }
    }
  }
  return result;
}

TEST(Interleave, TakesTurns) {
  EXPECT_THAT(elements(Dataset::interleave(inputs({3, 3}))), ElementsAre(0, 100, 1, 101, 2, 102));
  EXPECT_THAT(elements(Dataset::interleave(inputs({3, 1, 3}), 2, 2)),
              ElementsAre(0, 1, 100, 200, 201, 2, 202));
  EXPECT_THAT(elements(Dataset::interleave(inputs({2, 2}), 1)), ElementsAre(0, 1, 100, 101));
}

TEST(Interleave, AgreesWithTheReference) {
  const std::vector<int32_t> sizes{5, 0, 1, 9, 4, 0, 7, 2, 0};
  for (const bool streams : {false, true})
    for (const int64_t cycle : {1, 2, 3, 9, 100})
      for (const int32_t block : {1, 2, 3, 50})
        EXPECT_EQ(elements(Dataset::interleave(inputs(sizes, streams), cycle, block)),
                  reference(sizes, static_cast<size_t>(cycle), block))
            << cycle << " " << block;
}

TEST(Interleave, KnowsItsSize) {
  const Dataset dataset = Dataset::interleave(inputs({5, 3}));
  EXPECT_EQ(dataset.cardinality(), 8);
  EXPECT_EQ(dataset.epoch_size(), 8);
  EXPECT_EQ(dataset.repeat().epoch_size(), 8);
  EXPECT_EQ(Dataset::interleave({numbers(3), generated(2)}).cardinality(), Dataset::kUnknown);
  EXPECT_EQ(Dataset::interleave({numbers(3), numbers(2).repeat()}).cardinality(), Dataset::kInfinite);
}

// Samples of different inputs have the same number in them, and draw different random numbers above
// all the same.
TEST(Interleave, GivesEachSampleRandomNumbersOfItsOwn) {
  const Dataset dataset =
      Dataset::interleave({numbers(20), numbers(20), numbers(20)})
          .map([](const SampleContext& context, const Element&) {
            return scalar_element(static_cast<int32_t>(context.random().below(0, 1 << 30)));
          });
  const Numbers drawn = elements(dataset);
  EXPECT_EQ(std::set<int32_t>(drawn.begin(), drawn.end()).size(), 60u);
}

// The ranks of a job, and any number of threads, see the same order.
TEST(Interleave, SharesAndThreadsAgree) {
  const auto slow = [](const Element& e) {
    work();
    return e;
  };
  const Dataset dataset = Dataset::interleave(inputs({11, 7, 5}), 2).map(slow).repeat(3).batch(2);
  const Batches expected = run(dataset, {.threads = 0});
  EXPECT_EQ(run(dataset, {.threads = 4}), expected);
  Batches both;
  const Batches first = run(dataset, {.threads = 2, .group_size = 2, .group_first = 0}),
                second = run(dataset, {.threads = 2, .group_size = 2, .group_first = 1});
  for (size_t i = 0; i < expected.size(); ++i) both.push_back(i % 2 ? second.at(i / 2) : first.at(i / 2));
  EXPECT_EQ(both, expected);
}

TEST(Interleave, RefusesWhatCannotBe) {
  const auto message = [](auto&& make) -> std::string {
    try {
      make();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message([] { Dataset::interleave({}); }), HasSubstr("at least one data set"));
  EXPECT_THAT(message([] { Dataset::interleave({numbers(2)}, 0); }), HasSubstr("open at a time"));
  EXPECT_THAT(message([] { Dataset::interleave({numbers(2)}, 1, 0); }), HasSubstr("at least one element"));
  EXPECT_THAT(
      message([] {
        Dataset::interleave({numbers(2), numbers(2).batch(2)});
      }),
      testing::AllOf(HasSubstr("interleave_test.cc"), HasSubstr("{int32[]}"), HasSubstr("{int32[2]}")));
}

}  // namespace
}  // namespace mox
