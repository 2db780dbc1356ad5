// The shares of several pipelines: each batch is delivered by exactly one, and positions fit every division.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::HasSubstr;

PipelineOptions share(int64_t size, int64_t first, int64_t count, int threads = 0) {
  return {.seed = 5, .threads = threads, .group_size = size, .group_first = first, .group_count = count};
}

struct SharedCase {
  const char* name;
  std::function<Dataset()> make;
};

std::vector<SharedCase> shared_cases() {
  const auto slow = [](const Element& e) {
    work();
    return e;
  };
  return {
      {"Shuffled", [=] { return numbers(103).shuffle(103).map(slow).batch(4); }},
      {"Repeated", [=] { return numbers(23).shuffle(23).repeat(5).map(slow).batch(4); }},
      {"Filtered",
       [=] {
         return numbers(200).filter([](const Element& e) { return value_of(e) % 3 != 0; }).map(slow).batch(4);
       }},
      {"Generated", [=] { return generated(101).map(slow).batch(4); }},
      {"AFullGroupAtTheEnd", [=] { return numbers(96).map(slow).batch(4); }},
  };
}

void PrintTo(const SharedCase& value, std::ostream* out) { *out << value.name; }

class Shares : public testing::TestWithParam<SharedCase> {};

TEST_P(Shares, TogetherAreTheWhole) {
  const Dataset dataset = GetParam().make();
  const Batches whole = run(dataset, {.seed = 5});
  for (const int threads : {0, 2}) {
    for (const int64_t count : {1, 2, 3, 6}) {
      std::vector<Batches> parts;
      for (int64_t first = 0; first < 6; first += count)
        parts.push_back(run(dataset, share(6, first, count, threads)));
      std::vector<size_t> next(parts.size());
      for (size_t i = 0; i < whole.size(); ++i) {
        const size_t part = i % 6 / static_cast<size_t>(count);
        ASSERT_LT(next[part], parts[part].size()) << "batch " << i;
        EXPECT_EQ(parts[part][next[part]++], whole[i]) << "batch " << i;
      }
      for (size_t part = 0; part < parts.size(); ++part) EXPECT_EQ(next[part], parts[part].size());
    }
  }
}

TEST_P(Shares, GoOnFromEachOthersPositions) {
  const Dataset dataset = GetParam().make();
  const Batches whole = run(dataset, {.seed = 5});
  for (const int threads : {0, 2}) {
    // Two groups of four by the second of two shares, one by the first of four, one by all at once;
    // then the end.
    std::string cursor;
    size_t at = 0;
    Batch batch;
    const auto take = [&](const PipelineOptions& options, int groups) {
      Pipeline pipeline(dataset, options, cursor);
      for (int group = 0; group < groups; ++group, at += 4)
        for (int64_t i = 0; i < options.group_count; ++i) {
          ASSERT_TRUE(pipeline.next(&batch));
          EXPECT_EQ(rows_of(batch), whole[at + static_cast<size_t>(options.group_first + i)]);
        }
      cursor = pipeline.cursor();
    };
    take(share(4, 2, 2, threads), 2);
    take(share(4, 0, 1, threads), 1);
    take(share(4, 0, 4, threads), 1);
    EXPECT_EQ(run(dataset, share(4, 0, 4, threads), cursor),
              Batches(whole.begin() + static_cast<long>(at), whole.end()));
  }
}

TEST_P(Shares, StandAtTheEndWhenTheDataHaveEnded) {
  const Dataset dataset = GetParam().make();
  for (int64_t first = 0; first < 7; ++first) {
    Pipeline pipeline(dataset, share(7, first, 1));
    Batch batch;
    while (pipeline.next(&batch)) {
    }
    EXPECT_TRUE(run(dataset, share(7, 0, 7), pipeline.cursor()).empty()) << "share " << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Datasets, Shares, testing::ValuesIn(shared_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Share, MustLieWithinItsGroup) {
  for (const auto& [size, first, count] :
       {std::tuple{4, 3, 2}, {4, -1, 1}, {4, 0, 0}, {0, 0, 1}, {4, 4, 1}}) {
    try {
      Pipeline pipeline(numbers(10).batch(2), share(size, first, count));
      FAIL() << size << " " << first << " " << count;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("does not lie within a group"));
    }
  }
}

}  // namespace
}  // namespace mox
