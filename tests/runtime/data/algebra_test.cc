// Every operation against a plain reference.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/data/shuffled.h"
#include "tests/runtime/data/pipeline_testing.h"

namespace mox {
namespace {

using namespace data_testing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

// Each operation is tried over data with positions and over a stream.
class Algebra : public testing::TestWithParam<bool> {
 protected:
  Dataset source(int32_t count) const { return GetParam() ? generated(count) : numbers(count); }
};
INSTANTIATE_TEST_SUITE_P(Sources, Algebra, testing::Bool(),
                         [](const auto& info) { return info.param ? "Stream" : "Positions"; });

TEST_P(Algebra, GivesTheElementsInOrder) { EXPECT_EQ(elements(source(100)), range(0, 100)); }

TEST_P(Algebra, EmptyDataGivesNothing) {
  EXPECT_TRUE(elements(source(0)).empty());
  EXPECT_TRUE(elements(source(0).repeat(3)).empty());
  EXPECT_TRUE(elements(source(5).take(0).repeat(int64_t{1} << 62)).empty()) << "at once";
  EXPECT_TRUE(elements(source(0).shuffle(4)).empty());
  EXPECT_TRUE(elements(source(0).cache()).empty());
}

TEST_P(Algebra, BatchKeepsTheRemainderUnlessAskedToDropIt) {
  EXPECT_THAT(run(source(5).batch(2)), ElementsAre(Numbers{0, 1}, Numbers{2, 3}, Numbers{4}));
  EXPECT_THAT(run(source(5).batch(2, true)), ElementsAre(Numbers{0, 1}, Numbers{2, 3}));
  EXPECT_THAT(run(source(4).batch(2)), ElementsAre(Numbers{0, 1}, Numbers{2, 3}));
  EXPECT_THAT(run(source(3).batch(8)), ElementsAre(Numbers{0, 1, 2}));
  EXPECT_TRUE(run(source(3).batch(8, true)).empty());
}

TEST_P(Algebra, BatchBelowRepeatEndsWithThePassAndAboveItRunsOn) {
  EXPECT_THAT(run(source(3).batch(2).repeat(2)),
              ElementsAre(Numbers{0, 1}, Numbers{2}, Numbers{0, 1}, Numbers{2}));
  EXPECT_THAT(run(source(3).repeat(2).batch(2)), ElementsAre(Numbers{0, 1}, Numbers{2, 0}, Numbers{1, 2}));
}

TEST_P(Algebra, BatchOfBatchesStacksAgain) {
  Pipeline pipeline(source(12).batch(2, true).batch(3), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(batch.components[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(rows_of(batch), range(0, 6));
  EXPECT_EQ(batch.size, 3);
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_EQ(rows_of(batch), range(6, 12));
  EXPECT_FALSE(pipeline.next(&batch));
}

TEST_P(Algebra, MapTransformsWithAndWithoutASignature) {
  const auto twice = [](const Element& e) { return scalar_element(2 * value_of(e)); };
  EXPECT_THAT(elements(source(4).map(twice)), ElementsAre(0, 2, 4, 6));
  const auto with_context = [](const SampleContext& context, const Element& e) {
    return scalar_element(value_of(e) + 10 * static_cast<int32_t>(context.sample));
  };
  EXPECT_THAT(elements(source(4).map({{DType::kInt32, Shape{}}}, with_context)), ElementsAre(0, 11, 22, 33));
  const auto into = [](const SampleContext&, const Element& e, std::span<Array> out) {
    out[0].values<int32_t>()[0] = value_of(e) + 1;
    out[1].values<float>()[0] = 0.5f;
  };
  const Dataset two = source(5).map_into({{DType::kInt32, Shape{}}, {DType::kFloat32, Shape{1}}}, into);
  EXPECT_THAT(run(two.batch(3)), ElementsAre(Numbers{1, 2, 3}, Numbers{4, 5}));
}

TEST_P(Algebra, MapAboveBatchSeesWholeBatchesAndTheShortLastOne) {
  const auto negate = [](const Element& e) {
    Array result = e[0].clone();
    for (auto& v : result.values<int32_t>()) v = -v;
    return Element{result};
  };
  EXPECT_THAT(run(source(5).batch(2).map(negate)), ElementsAre(Numbers{0, -1}, Numbers{-2, -3}, Numbers{-4}));
  const auto into = [](const SampleContext&, const Element& e, std::span<Array> out) {
    for (size_t i = 0; i < e[0].values<int32_t>().size(); ++i)
      out[0].values<int32_t>()[i] = e[0].values<int32_t>()[i] + 1;
  };
  EXPECT_THAT(run(source(5).batch(2).map_into({{DType::kInt32, Shape{2}}}, into)),
              ElementsAre(Numbers{1, 2}, Numbers{3, 4}, Numbers{5}));
}

TEST_P(Algebra, FilterKeepsWhatThePredicateKeeps) {
  const auto odd = [](const Element& e) { return value_of(e) % 2 == 1; };
  Numbers expected;
  for (int32_t i = 1; i < 500; i += 2) expected.push_back(i);
  EXPECT_EQ(elements(source(500).filter(odd)), expected);
  EXPECT_THAT(run(source(7).filter(odd).batch(2)), ElementsAre(Numbers{1, 3}, Numbers{5}));
  EXPECT_THAT(elements(source(5).filter(odd).repeat(2)), ElementsAre(1, 3, 1, 3));
}

TEST_P(Algebra, ShardTakeSkipAreSlices) {
  EXPECT_THAT(elements(source(10).shard(1, 3)), ElementsAre(1, 4, 7));
  EXPECT_THAT(elements(source(10).shard(0, 3)), ElementsAre(0, 3, 6, 9));
  EXPECT_TRUE(elements(source(2).shard(2, 3)).empty());
  EXPECT_THAT(elements(source(10).take(3)), ElementsAre(0, 1, 2));
  EXPECT_EQ(elements(source(3).take(9)), range(0, 3));
  EXPECT_TRUE(elements(source(3).take(0)).empty());
  EXPECT_THAT(elements(source(5).skip(3)), ElementsAre(3, 4));
  EXPECT_TRUE(elements(source(5).skip(9)).empty());
  EXPECT_THAT(elements(source(10).skip(2).shard(1, 2).take(2).repeat(2)), ElementsAre(3, 5, 3, 5));
  EXPECT_THAT(elements(source(3).repeat().skip(4).take(4)), ElementsAre(1, 2, 0, 1));
}

TEST_P(Algebra, ShardsTogetherAreTheWholeEvenOfAShuffle) {
  Numbers together;
  for (int index = 0; index < 3; ++index) {
    const Numbers part = elements(source(20).shuffle(20).shard(index, 3));
    together.insert(together.end(), part.begin(), part.end());
  }
  EXPECT_THAT(together, UnorderedElementsAreArray(range(0, 20)));
}

TEST_P(Algebra, ZipPutsComponentsSideBySideAndEndsWithTheShortest) {
  const Dataset zipped = Dataset::zip({source(3), source(5).skip(1), numbers(9).repeat()});
  Pipeline pipeline(zipped.batch(2), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  ASSERT_EQ(batch.components.size(), 3u);
  EXPECT_THAT(rows_of(batch, 0), ElementsAre(0, 1));
  EXPECT_THAT(rows_of(batch, 1), ElementsAre(1, 2));
  EXPECT_THAT(rows_of(batch, 2), ElementsAre(0, 1));
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_THAT(rows_of(batch, 1), ElementsAre(3));
  EXPECT_FALSE(pipeline.next(&batch));
}

// Pictures and their labels, each shuffled for itself, are no pairs any more.
TEST(Zip, PartsThatDoNotBelongTogetherAreSaid) {
  const auto said_of = [](const std::vector<Dataset>& parts) {
    testing::internal::CaptureStderr();
    Pipeline pipeline(Dataset::zip(parts).batch(2), {});
    return testing::internal::GetCapturedStderr();
  };
  const Dataset pictures = Dataset::from_arrays({Array(DType::kFloat32, {9, 4})}), labels = numbers(9);
  EXPECT_THAT(said_of({pictures.shuffle(9), labels.shuffle(9)}),
              testing::AllOf(HasSubstr("zip (data/algebra_test.cc:"),
                             HasSubstr("2 of its 2 data sets are shuffled"), HasSubstr("Shuffle what zip")));
  EXPECT_EQ(said_of({pictures.shuffle(9), pictures.shuffle(9)}), "") << "two kinds, which are meant so";
  EXPECT_EQ(said_of({pictures.shuffle_once(9, 1), labels.shuffle_once(9, 1)}), "");
  EXPECT_THAT(said_of({pictures, numbers(8)}), HasSubstr("one data set has 8 elements, another 9"));
  EXPECT_EQ(said_of({pictures, labels.repeat()}), "");

  const Dataset evaluated = Dataset::zip({pictures, numbers(8)}).batch(2);
  testing::internal::CaptureStderr();
  for (int evaluation = 0; evaluation < 3; ++evaluation) Pipeline pipeline(evaluated, {});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("ends with the shorter"), said.rfind("ends with the shorter")) << said;
}

// What TensorFlow's shuffle does, with our random numbers: draw from a window, refill it from the input.
TEST_P(Algebra, BufferedShuffleDrawsFromItsWindow) {
  const Numbers shuffled = elements(source(100).shuffle(8), {.seed = 3});
  EXPECT_THAT(shuffled, UnorderedElementsAreArray(range(0, 100)));
  for (int32_t i = 0; i < 100; ++i) EXPECT_LT(shuffled[i], i + 8) << "drawn before it came in";
  EXPECT_NE(shuffled, range(0, 100));
  EXPECT_EQ(elements(source(100).shuffle(1)), range(0, 100));
}

TEST(Shuffle, ABufferOfTheWholeDataIsThePermutation) {
  const Numbers shuffled = elements(numbers(1000).shuffle(1000), {.seed = 3});
  EXPECT_THAT(shuffled, UnorderedElementsAreArray(range(0, 1000)));
  EXPECT_EQ(elements(numbers(1000).shuffle(99999), {.seed = 3}), shuffled);
  EXPECT_NE(elements(numbers(1000).shuffle(1000), {.seed = 4}), shuffled);
  int moved_far = 0;
  for (int32_t i = 0; i < 1000; ++i) moved_far += std::abs(shuffled[i] - i) > 250;
  EXPECT_GT(moved_far, 400);
}

TEST_P(Algebra, EachPassShufflesAnew) {
  for (int window : {6, 30}) {
    const Numbers two = elements(source(30).shuffle(window).repeat(2));
    const Numbers first(two.begin(), two.begin() + 30), second(two.begin() + 30, two.end());
    EXPECT_THAT(first, UnorderedElementsAreArray(range(0, 30)));
    EXPECT_THAT(second, UnorderedElementsAreArray(range(0, 30)));
    EXPECT_NE(first, second);
  }
}

TEST_P(Algebra, TwoShufflesDrawDifferentNumbers) {
  Pipeline pipeline(Dataset::zip({source(50).shuffle(50), source(50).shuffle(50)}).batch(50), {});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  EXPECT_NE(rows_of(batch, 0), rows_of(batch, 1));
}

TEST_P(Algebra, CacheComputesOnce) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset cached = source(70)
                             .map({{DType::kInt32, Shape{}}},
                                  [calls](const SampleContext&, const Element& e) {
                                    ++*calls;
                                    return scalar_element(value_of(e) * 3);
                                  })
                             .cache();
  const Numbers three = elements(cached.repeat(3));
  ASSERT_EQ(three.size(), 210u);
  for (size_t i = 0; i < three.size(); ++i) EXPECT_EQ(three[i], static_cast<int32_t>(i % 70) * 3);
  EXPECT_EQ(*calls, 70);
  EXPECT_EQ(elements(cached), Numbers(three.begin(), three.begin() + 70));
  EXPECT_EQ(*calls, 70) << "a second pipeline shares the memory";
}

TEST_P(Algebra, CacheFreezesTheFirstPassAndShufflesAboveItGoOn) {
  const Numbers frozen = elements(source(20).shuffle(20).cache().repeat(2));
  EXPECT_TRUE(std::equal(frozen.begin(), frozen.begin() + 20, frozen.begin() + 20));
  const Numbers fresh = elements(source(20).cache().shuffle(20).repeat(2));
  EXPECT_FALSE(std::equal(fresh.begin(), fresh.begin() + 20, fresh.begin() + 20));
}

TEST_P(Algebra, CacheOfBatchesKeepsTheShortOne) {
  EXPECT_THAT(
      run(source(5).batch(2).cache().repeat(2)),
      ElementsAre(Numbers{0, 1}, Numbers{2, 3}, Numbers{4}, Numbers{0, 1}, Numbers{2, 3}, Numbers{4}));
}

TEST_P(Algebra, PrefetchChangesNothing) {
  EXPECT_EQ(elements(source(30).prefetch(4).shuffle(30).prefetch(2)), elements(source(30).shuffle(30)));
}

TEST_P(Algebra, BatchesNameThePassOfTheirFirstSample) {
  const Dataset batches = source(3).shuffle(3).repeat(3).batch(2);
  const auto all = [](const Element&) { return true; };
  for (const Dataset& dataset :
       {batches, batches.filter(all), batches.filter(all).filter(all), batches.filter(all).shuffle(1)}) {
    Pipeline pipeline(dataset, {});
    std::vector<uint64_t> epochs;
    for (Batch batch; pipeline.next(&batch);) epochs.push_back(batch.epoch);
    EXPECT_THAT(epochs, ElementsAre(0, 0, 1, 2, 2)) << dataset.describe();
  }
}

TEST_P(Algebra, RandomMapsDependOnSeedPassAndSampleAlone) {
  const auto draw = [](const SampleContext& context, const Element& e) {
    return Element{Array::scalar<int32_t>(value_of(e)),
                   Array::scalar<int32_t>(static_cast<int32_t>(context.random().below(0, 1 << 30)))};
  };
  const auto drawn = [&](const Dataset& dataset,
                         uint64_t seed) {  // [value] -> its numbers in order of passes
    std::map<int32_t, Numbers> result;
    Pipeline pipeline(dataset.batch(4), {.seed = seed});
    for (Batch batch; pipeline.next(&batch);)
      for (size_t i = 0; i < static_cast<size_t>(batch.size); ++i)
        result[rows_of(batch, 0)[i]].push_back(rows_of(batch, 1)[i]);
    return result;
  };
  const auto plain = drawn(source(10).map(draw).repeat(2), 5);
  for (const auto& [value, numbers] : plain)
    EXPECT_NE(numbers[0], numbers[1]) << "another pass, other numbers";
  EXPECT_NE(drawn(source(10).map(draw).repeat(2), 6), plain);
  if (!GetParam()) {  // the order of visiting does not matter where samples have an identity
    EXPECT_EQ(drawn(source(10).map(draw).shuffle(10).repeat(2), 5), plain);
  }
}

TEST(Dataset, KnowsItsSizes) {
  const auto odd = [](const Element& e) { return value_of(e) % 2 == 1; };
  const auto sizes = [](const Dataset& d) { return std::pair(d.cardinality(), d.epoch_size()); };
  using Pair = std::pair<int64_t, int64_t>;
  constexpr int64_t kInfinite = Dataset::kInfinite, kUnknown = Dataset::kUnknown;
  EXPECT_EQ(sizes(numbers(10)), Pair(10, 10));
  EXPECT_EQ(sizes(numbers(10).shuffle(3).repeat()), Pair(kInfinite, 10));
  EXPECT_EQ(sizes(numbers(10).repeat(3)), Pair(30, 10));
  EXPECT_EQ(sizes(numbers(10).batch(4)), Pair(3, 3));
  EXPECT_EQ(sizes(numbers(10).batch(4, true).repeat()), Pair(kInfinite, 2));
  EXPECT_EQ(sizes(numbers(10).repeat().batch(5)), Pair(kInfinite, 2));
  EXPECT_EQ(sizes(numbers(10).repeat().batch(4)), Pair(kInfinite, kUnknown));
  EXPECT_EQ(sizes(numbers(10).shard(1, 4)), Pair(3, 3));
  EXPECT_EQ(sizes(numbers(10).repeat().take(25)), Pair(25, 10));
  EXPECT_EQ(sizes(numbers(10).take(4).repeat()), Pair(kInfinite, 4));
  EXPECT_EQ(sizes(numbers(10).skip(4)), Pair(6, 6));
  EXPECT_EQ(sizes(numbers(10).filter(odd)), Pair(kUnknown, kUnknown));
  EXPECT_EQ(sizes(numbers(10).filter(odd).repeat()), Pair(kInfinite, kUnknown));
  EXPECT_EQ(sizes(numbers(10).repeat().filter(odd)), Pair(kInfinite, kUnknown));
  EXPECT_EQ(sizes(generated(5)), Pair(kUnknown, kUnknown));
  EXPECT_EQ(sizes(Dataset::zip({numbers(4), numbers(9)})), Pair(4, 4));
  EXPECT_EQ(sizes(Dataset::zip({numbers(4).repeat(), numbers(4).repeat()})), Pair(kInfinite, 4));
}

TEST(Dataset, KnowsWhetherItsPassesAreMixed) {
  const Dataset mixed = numbers(10).repeat().shuffle(10);
  EXPECT_TRUE(mixes_passes(mixed));
  EXPECT_TRUE(mixes_passes(numbers(10).repeat().shuffle_once(10, 1)));
  EXPECT_TRUE(mixes_passes(numbers(10).repeat().batch(5).shuffle(2)));
  EXPECT_TRUE(mixes_passes(numbers(10).repeat(3).shuffle(10).repeat()));
  EXPECT_TRUE(mixes_passes(mixed.batch(5).prefetch(2)));
  EXPECT_TRUE(mixes_passes(Dataset::zip({numbers(10).repeat(), mixed})));
  EXPECT_FALSE(mixes_passes(numbers(10).shuffle(10).repeat()));
  EXPECT_FALSE(mixes_passes(numbers(10).repeat().shuffle(1)));
  EXPECT_FALSE(mixes_passes(numbers(10).repeat(3).shuffle(10).cache().repeat()));
  EXPECT_FALSE(mixes_passes(Dataset::zip({numbers(10), mixed}).repeat())) << "a pass is that of the zip";
}

TEST(Dataset, KnowsItsSignature) {
  const Dataset pair = Dataset::from_arrays({Array(DType::kFloat32, {6, 2, 3}), Array(DType::kUInt8, {6})});
  EXPECT_EQ(pair.signature(),
            (std::vector<TensorType>{{DType::kFloat32, Shape{2, 3}}, {DType::kUInt8, Shape{}}}));
  EXPECT_EQ(pair.batch(4).signature()[0], (TensorType{DType::kFloat32, Shape{4, 2, 3}}));
  const auto drop_second = [](const Element& e) { return Element{e[0].reshaped({6})}; };
  EXPECT_EQ(pair.map(drop_second).signature(), (std::vector<TensorType>{{DType::kFloat32, Shape{6}}}));
  EXPECT_EQ(Dataset::zip({pair, pair}).signature().size(), 4u);
}

TEST(Dataset, DescribesItself) {
  EXPECT_EQ(numbers(3).shuffle(3).repeat().batch(2).describe(),
            "from_arrays(3) x {int32[]} | shuffle(3) | repeat() | batch(2)");
}

}  // namespace
}  // namespace mox
