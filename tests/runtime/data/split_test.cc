// Parts of a data set that share no sample, in every pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "runtime/base/error.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using data_testing::generated;
using data_testing::Numbers;
using data_testing::numbers;
using data_testing::scalar_element;
using data_testing::value_of;

Numbers all_of(const Dataset& dataset, uint64_t seed = 0) {
  Numbers result;
  for (const Numbers& batch : data_testing::run(dataset.batch(7), {.seed = seed}))
    result.insert(result.end(), batch.begin(), batch.end());
  return result;
}
std::set<int32_t> set_of(const Numbers& values) { return {values.begin(), values.end()}; }

TEST(Split, PartsShareNothingInAnyPassOrPipeline) {
  const auto [train, validation] = numbers(100).split(0.8, 7);
  const auto seen = set_of(all_of(train.shuffle(100).repeat(5), 1));
  const auto held_back = set_of(all_of(validation.shuffle(20).repeat(3), 2));
  EXPECT_EQ(seen.size(), 80U);
  EXPECT_EQ(held_back.size(), 20U);
  for (const int32_t value : held_back) EXPECT_FALSE(seen.contains(value)) << value;
  EXPECT_EQ(all_of(numbers(100).split(0.8, 7).second), all_of(validation));
  EXPECT_NE(all_of(numbers(100).split(0.8, 8).second), all_of(validation));
  EXPECT_EQ(train.cardinality(), 80);
}

// Two runs with seeds of their own, as of a training and of a later evaluation.
TEST(Split, TakeAndSkipOfAShuffleShareNothingWhateverTheSeed) {
  const auto disjoint = [](const Dataset& shuffled) {
    const auto seen = set_of(all_of(shuffled.take(80), 7));
    EXPECT_EQ(seen.size(), 80U);
    const auto held_back = set_of(all_of(shuffled.skip(80), 0));
    EXPECT_EQ(held_back.size(), 20U);
    for (const int32_t value : held_back) EXPECT_FALSE(seen.contains(value)) << value;
    EXPECT_EQ(all_of(shuffled.take(80), 1), all_of(shuffled.take(80), 2));
    EXPECT_EQ(set_of(all_of(shuffled, 7)).size(), 100U);  // in an order of its own
    EXPECT_NE(all_of(shuffled, 7), all_of(shuffled, 8));
  };
  disjoint(numbers(100).shuffle(100));
  disjoint(numbers(100).shuffle(100).shuffle(100));
  disjoint(numbers(100).shuffle(10));  // a window
  disjoint(numbers(100).shuffle(100).cache());
  disjoint(numbers(100).filter([](const Element&) { return true; }).shuffle(50));
  const auto shards = numbers(100).shuffle(100);
  const auto first = set_of(all_of(shards.shard(0, 2), 3)), second = set_of(all_of(shards.shard(1, 2), 4));
  for (const int32_t value : second) EXPECT_FALSE(first.contains(value)) << value;
}

// What else a training takes its samples from does not move the selection.
TEST(Split, TakeAndSkipShareNothingWhereverTheyStand) {
  const Dataset extra = numbers(80).map([](const Element& e) { return scalar_element(value_of(e) + 1000); });
  for (const Dataset& shuffled : {numbers(100).shuffle(100), numbers(100).shuffle(10),
                                  numbers(100).shuffle(100).cache(), generated(100).shuffle(100)}) {
    Numbers both = all_of(Dataset::interleave({shuffled.take(50), shuffled.skip(50)}));
    std::ranges::sort(both);
    EXPECT_EQ(both, data_testing::range(0, 100)) << shuffled.describe();

    Pipeline pipeline(Dataset::zip({shuffled.take(50), shuffled.skip(50)}).batch(50), {});
    Batch batch;
    ASSERT_TRUE(pipeline.next(&batch));
    auto pairs = set_of(data_testing::rows_of(batch, 0));
    pairs.merge(set_of(data_testing::rows_of(batch, 1)));
    EXPECT_EQ(pairs.size(), 100U) << shuffled.describe();

    const Dataset train = Dataset::interleave({extra, Dataset::interleave({extra, shuffled.take(80)})});
    const auto seen = set_of(all_of(train, 7));
    for (const int32_t value : all_of(shuffled.skip(80), 0)) EXPECT_FALSE(seen.contains(value)) << value;
  }
}

// A position that was saved before they had one order is not taken for one of theirs; others are.
TEST(Split, SelectionsInLaterPartsSaySo) {
  const Dataset shuffled = numbers(9).shuffle(9);
  EXPECT_EQ(shuffled.take(5).describe(), "from_arrays(9) x {int32[]} | shuffle(9) | take(5) of one order");
  EXPECT_EQ(Dataset::zip({shuffled.take(5), Dataset::zip({shuffled.skip(5)}), numbers(9).take(5)}).describe(),
            "from_arrays(9) x {int32[]} | shuffle(9) | take(5) of one order | "
            "from_arrays(9) x {int32[]} | shuffle(9) | skip(5) of one order in all parts | zip(1) | "
            "from_arrays(9) x {int32[]} | take(5) | zip(3)");
  EXPECT_EQ(Dataset::zip({numbers(9), shuffled}).take(5).describe(),
            "from_arrays(9) x {int32[]} | from_arrays(9) x {int32[]} | shuffle(9) | zip(2) | "
            "take(5) of one order");
}

// In two pipelines a cache may be the same stage, and yet another part of a zip: its data have another order.
TEST(Split, PipelinesShareCachesOfOneOrderAlone) {
  const auto cached = [] { return numbers(20).shuffle(20).cache(); };
  const auto last_of = [](const Dataset& dataset) {
    Pipeline pipeline(dataset.take(10).batch(10), {});
    Batch batch;
    EXPECT_TRUE(pipeline.next(&batch));
    return data_testing::rows_of(batch, 2);
  };
  const Dataset other = numbers(20), shared = cached();
  const auto nested = [&](const Dataset& last) { return Dataset::zip({Dataset::zip({other, other}), last}); };
  const Numbers expected = last_of(nested(cached()));
  EXPECT_NE(last_of(Dataset::zip({other, other, shared})), expected);
  EXPECT_EQ(last_of(nested(shared)), expected);
}

// A number of steps of endless data is no part: each of its passes has an order of its own.
// Else the elements of two parts would always meet the same partners.
TEST(Split, TakeOfAZipOfShufflesPairsThemAtRandom) {
  Pipeline pipeline(Dataset::zip({numbers(100).shuffle(100), numbers(100).shuffle(100)}).take(80).batch(80),
                    {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_NE(data_testing::rows_of(batch, 0), data_testing::rows_of(batch, 1));
}

TEST(Split, TakeOfARepeatedShuffleStaysAsItWas) {
  const auto data = numbers(20).shuffle(20).repeat().take(40);
  const Numbers values = all_of(data, 7);
  EXPECT_NE(Numbers(values.begin(), values.begin() + 20), Numbers(values.begin() + 20, values.end()));
  EXPECT_NE(all_of(data, 8), values);
  const auto window = numbers(20).repeat().shuffle(20).take(40);
  EXPECT_NE(all_of(window, 7), all_of(window, 8));
}

TEST(Split, OfAStream) {
  const auto data = numbers(40).filter([](const Element&) { return true; });
  EXPECT_THROW(data.split(0.5, 1), InvalidArgument);  // its size is not known
}

TEST(Split, ByClass) {
  Numbers id, label;
  for (int32_t i = 0; i < 100; ++i) {
    id.push_back(i);
    label.push_back(i < 90 ? 0 : i < 99 ? 5 : -3);
  }
  const Dataset both =
      Dataset::from_arrays({data_testing::numbers_array(id), data_testing::numbers_array(label)});
  const auto [first, second] = both.split(2.0 / 3, 3, size_t{1});
  const Numbers a = all_of(first), b = all_of(second);
  const auto of_class = [](const Numbers& part, int32_t low, int32_t high) {
    return std::count_if(part.begin(), part.end(), [&](int32_t v) { return v >= low && v < high; });
  };
  EXPECT_EQ(of_class(a, 0, 90), 60);
  EXPECT_EQ(of_class(b, 0, 90), 30);
  EXPECT_EQ(of_class(a, 90, 99), 6);
  EXPECT_EQ(of_class(b, 90, 99), 3);
  EXPECT_EQ(of_class(a, 99, 100), 1);
  EXPECT_EQ(a.size() + b.size(), 100U);
  EXPECT_THROW(both.split(0.5, 3, size_t{2}), InvalidArgument);
}

// The classes that are read are those of the samples that the parts give, with any seed.
TEST(Split, ByClassOfACachedShuffle) {
  Numbers label(100);
  for (int32_t i = 0; i < 20; ++i) label[i] = 1;
  const Dataset both = Dataset::from_arrays(
      {data_testing::numbers_array(data_testing::range(0, 100)), data_testing::numbers_array(label)});
  for (const Dataset& cached : {both.shuffle(100).cache(), both.shuffle(10).cache()}) {
    const auto [first, second] = cached.split(0.8, 1, size_t{1});
    EXPECT_NE(first.describe().find("by component 1 in one order, 1)"), std::string::npos);
    for (const uint64_t seed : {0, 7}) {
      const Numbers a = all_of(first, seed), b = all_of(second, seed);
      EXPECT_EQ(a.size(), 80U);
      EXPECT_EQ(std::ranges::count_if(a, [](int32_t v) { return v < 20; }), 16) << seed;
      EXPECT_EQ(std::ranges::count_if(b, [](int32_t v) { return v < 20; }), 4) << seed;
    }
  }
}

// What it kept would lie beside what the run keeps, with its own seed, as long as the data set is there.
TEST(Split, ByClassKeepsNothingInACache) {
  auto made = std::make_shared<std::atomic<int>>(0);
  const auto with_class = [made](const SampleContext&, const Element& e) -> Element {
    ++*made;
    return {e[0], Array::scalar<int32_t>(value_of(e) % 2)};
  };
  const TensorType& scalar = data_testing::kScalar[0];
  const Dataset both = numbers(20).map({scalar, scalar}, with_class);
  for (const Dataset& cached : {both.cache(), both.shuffle(5).cache()}) {
    *made = 0;
    const auto [first, second] = cached.repeat(2).split(0.5, 1, size_t{1});
    EXPECT_EQ(*made, 40);
    const Numbers a = all_of(first), b = all_of(second);
    EXPECT_GE(*made, 60) << "none was there";
    for (const Numbers& part : {a, b}) {
      EXPECT_EQ(part.size(), 20U);
      EXPECT_EQ(std::ranges::count_if(part, [](int32_t v) { return v % 2 == 0; }), 10) << "as in pass 0";
    }
  }
}

// Nor does the element that says what a map above a filter gives.
TEST(Split, ATriedElementKeepsNothingInACache) {
  auto made = std::make_shared<std::atomic<int>>(0);
  const auto counted = [made](const SampleContext&, const Element& e) {
    ++*made;
    return e;
  };
  const Dataset cached = numbers(20).map(data_testing::kScalar, counted).cache();
  const Dataset mapped =
      cached.filter([](const Element&) { return true; }).map([](const Element& e) { return e; });
  EXPECT_EQ(mapped.signature().size(), 1U);
  const int tried = *made;
  EXPECT_EQ(all_of(mapped), data_testing::range(0, 20));
  EXPECT_GE(*made, tried + 20);
}

TEST(Split, RefusesWhatCannotBeSplit) {
  EXPECT_THROW(numbers(10).split(0, 1), InvalidArgument);
  EXPECT_THROW(numbers(10).split(1, 1), InvalidArgument);
  EXPECT_THROW(numbers(10).split(0.01, 1), InvalidArgument);
  EXPECT_THROW(numbers(10).repeat().split(0.5, 1), InvalidArgument);
  EXPECT_THROW(numbers(10).shuffle(10).split(0.5, 1), InvalidArgument);
}

TEST(ShuffleOnce, KeepsOneOrderInAllPassesAndPipelines) {
  for (const int64_t buffer : {20, 5}) {
    const Dataset data = numbers(20).shuffle_once(buffer, 9);
    const Numbers once = all_of(data), twice = all_of(data.repeat(2), 77);
    EXPECT_NE(once, data_testing::range(0, 20));
    EXPECT_EQ(set_of(once).size(), 20U);
    EXPECT_EQ(Numbers(twice.begin(), twice.begin() + 20), once);
    EXPECT_EQ(Numbers(twice.begin() + 20, twice.end()), once);
    EXPECT_NE(all_of(numbers(20).shuffle_once(buffer, 10)), once);
  }
}

TEST(SelectionFromAChangingOrder, IsRefusedWhereThereIsASecondPass) {
  const Dataset shuffled = numbers(20).shuffle(20);
  for (const Dataset& part :
       {shuffled.take(5), shuffled.skip(5), shuffled.shard(0, 2), numbers(20).shuffle(3).take(5),
        shuffled.take(5).shuffle(5), Dataset::zip({shuffled.skip(5), numbers(15)})}) {
    EXPECT_THROW(part.repeat(), InvalidArgument) << part.describe();
    EXPECT_THROW(part.repeat(2), InvalidArgument) << part.describe();
    EXPECT_NO_THROW(part.repeat(1));
  }
}

TEST(SelectionFromAChangingOrder, WhatSelectsTheSameInAllPassesIsAllowed) {
  const Dataset shuffled = numbers(20).shuffle(20);
  for (const Dataset& part :
       {shuffled, shuffled.take(20), shuffled.skip(0), shuffled.shard(0, 1), numbers(20).take(5).shuffle(5),
        numbers(20).shuffle_once(20, 1).take(5), shuffled.take(5).cache(), shuffled.cache().take(5)})
    EXPECT_NO_THROW(part.repeat()) << part.describe();
  EXPECT_NO_THROW(shuffled.repeat().take(30));
  EXPECT_NO_THROW(shuffled.repeat().shard(0, 2));
}

}  // namespace
}  // namespace mox
