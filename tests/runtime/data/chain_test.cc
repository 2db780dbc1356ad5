// Long chains of operations: made, asked, run and destroyed without a stack that grows with them, or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kLong = 30000;

using Operation = std::function<Dataset(const Dataset&)>;

Dataset chain_of(Dataset dataset, int count, const Operation& operation) {
  for (int i = 0; i < count; ++i) dataset = operation(dataset);
  return dataset;
}

Element one_more(const Element& element) { return scalar_element(value_of(element) + 1); }

const Operation kMap = [](const Dataset& d) { return d.map(one_more); };
const Operation kTypedMap = [](const Dataset& d) {
  return d.map(kScalar, [](const SampleContext&, const Element& e) { return one_more(e); });
};
const Operation kMapInto = [](const Dataset& d) {
  return d.map_into(kScalar, [](const SampleContext&, const Element& e, std::span<Array> outputs) {
    outputs[0].values<int32_t>()[0] = value_of(e) + 1;
  });
};

TEST(Chain, AnyNumberOfMapsRuns) {
  for (const Operation& operation : {kMap, kTypedMap, kMapInto}) {
    const Dataset chain = chain_of(numbers(3), kLong, operation);
    EXPECT_EQ(chain.cardinality(), 3);
    EXPECT_EQ(chain.signature(), kScalar);
    EXPECT_EQ(elements(chain), range(kLong, kLong + 3));
    EXPECT_EQ(elements(chain.filter([](const Element&) { return true; })), range(kLong, kLong + 3));
  }
}

TEST(Chain, MapsOfAllKindsRunInTheirOrder) {
  int kind = 0;
  const Dataset mixed = chain_of(numbers(3), 300, [&](const Dataset& d) {
    const int now = kind++ % 3;
    return now == 0 ? kMap(d) : now == 1 ? kTypedMap(d) : kMapInto(d);
  });
  EXPECT_EQ(elements(mixed), range(300, 303));
  const Dataset ends_in_map_into =
      kMapInto(numbers(3).map([](const Element& e) { return scalar_element(10 * value_of(e)); }));
  EXPECT_EQ(elements(ends_in_map_into), (Numbers{1, 11, 21}));
  EXPECT_EQ(elements(kMap(ends_in_map_into)), (Numbers{2, 12, 22}));
}

// Large elements are not kept, and yet no function is tried more than once.
TEST(Chain, EachMapIsTriedOnceToLearnTheTypes) {
  std::atomic<int> calls = 0;
  const Dataset large = Dataset::from_arrays({Array(DType::kFloat32, {2, 10000})});
  const Dataset chain = chain_of(large, 100, [&](const Dataset& d) {
    return d.map([&](const Element& e) {
      ++calls;
      return e;
    });
  });
  const Pipeline pipeline(chain.batch(2), {.threads = 0});
  EXPECT_EQ(calls, 100);
}

TEST(Chain, AMapBelowThatGivesNothingUsableIsNamedAndNotItsSuccessor) {
  const Dataset undefined = numbers(3).map([](const Element&) { return Element{Array()}; }).map(one_more);
  try {
    undefined.signature();
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("component 0 of the function's result is undefined"));
  }
}

TEST(Chain, OtherOperationsAreRefusedAboveTheLimitAndRunBelowIt) {
  const std::vector<std::pair<const char*, Operation>> operations = {
      {"take", [](const Dataset& d) { return d.take(3); }},
      {"skip", [](const Dataset& d) { return d.skip(0); }},
      {"shard", [](const Dataset& d) { return d.shard(0, 1); }},
      {"shuffle_once", [](const Dataset& d) { return d.shuffle_once(1, 5); }},
      {"repeat", [](const Dataset& d) { return d.repeat(1); }},
      {"cache", [](const Dataset& d) { return d.cache(); }},
      {"prefetch", [](const Dataset& d) { return d.prefetch(1); }},
      {"filter", [](const Dataset& d) { return d.filter([](const Element&) { return true; }); }},
      {"map and take", [](const Dataset& d) { return d.map([](const Element& e) { return e; }).take(3); }},
      {"zip", [](const Dataset& d) { return Dataset::zip({d}); }},
      {"interleave", [](const Dataset& d) { return Dataset::interleave({d}); }},
  };
  for (const auto& [name, operation] : operations) {
    SCOPED_TRACE(name);
    const int in_one = std::string_view(name) == "map and take" ? 2 : 1;
    EXPECT_EQ(elements(chain_of(numbers(3), 998 / in_one, operation)), range(0, 3));
    try {
      chain_of(numbers(3), kLong, operation);
      ADD_FAILURE() << "was not refused";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("more than 1000 operations"));
      EXPECT_THAT(error.what(), HasSubstr("chain_test.cc"));
    }
  }
}

// What an operation asks of those below it must not be asked of each of them several times.
TEST(Chain, NestedOperationsAreAskedInTimeOfTheirNumber) {
  const Dataset zipped = chain_of(numbers(3), 60, [](const Dataset& d) {
    return Dataset::zip({d, numbers(4)});
  });
  EXPECT_EQ(zipped.epoch_size(), 3);
  EXPECT_EQ(zipped.signature().size(), 61U);
  const Dataset repeated = chain_of(numbers(3), 60, [](const Dataset& d) { return d.repeat(1).batch(1); });
  EXPECT_EQ(repeated.cardinality(), 3);
}

}  // namespace
}  // namespace mox
