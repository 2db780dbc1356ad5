#include "moxing/image_sets/mix_up.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/support/message_of.h"

namespace mox::data {
namespace {

// Sample i is the image {i, 100 + i} with label i % 4.
Dataset samples(int64_t count) {
  Array images(DType::kFloat32, Shape{count, 2}), labels(DType::kInt32, Shape{count});
  for (int64_t i = 0; i < count; ++i) {
    images.values<float>()[2 * i] = static_cast<float>(i);
    images.values<float>()[2 * i + 1] = static_cast<float>(100 + i);
    labels.values<int32_t>()[i] = static_cast<int32_t>(i % 4);
  }
  return Dataset::from_arrays({images, labels});
}

std::vector<float> values_in(const Dataset& dataset, int threads = 0) {
  std::vector<float> all;
  Pipeline pipeline(dataset, {.seed = 3, .threads = threads});
  for (Batch batch; pipeline.next(&batch);)
    for (const Array& component : batch.components) {
      const auto values = component.values<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

// From the image alone it is known what was mixed: the difference of its two numbers is 100, and samples i
// and j of the share s give s i + (1 - s) j, whose label mass must be the same mixture.
TEST(MixUp, MixesImagesAndLabelsAlike) {
  Pipeline pipeline(mix_up(samples(10).repeat(200).batch(5), {.alpha = 0.4, .num_classes = 4}), {.seed = 9});
  std::set<float> shares;
  for (Batch batch; pipeline.next(&batch);) {
    ASSERT_EQ(batch.components[1].shape(), (Shape{5, 4}));
    const auto images = batch.components[0].values<float>(), labels = batch.components[1].values<float>();
    const auto base = static_cast<int64_t>(std::floor(std::min(images[0], images[2]) / 5)) * 5;
    bool explained = false;
    for (int distance = 1; distance < 5; ++distance) {
      // Sample 0 of the batch: s base + (1 - s) (base + distance).
      const float share = 1 - (images[0] - static_cast<float>(base)) / static_cast<float>(distance);
      bool fits = share >= -1e-4f && share <= 1.0001f;
      for (int64_t i = 0; fits && i < 5; ++i) {
        const int64_t first = base + i, second = base + (i + distance) % 5;
        const float image = share * static_cast<float>(first) + (1 - share) * static_cast<float>(second);
        fits = std::abs(images[2 * i] - image) < 1e-3 && std::abs(images[2 * i + 1] - image - 100) < 1e-2;
        for (int64_t c = 0; fits && c < 4; ++c) {
          const float mass = (first % 4 == c ? share : 0) + (second % 4 == c ? 1 - share : 0);
          fits = std::abs(labels[i * 4 + c] - mass) < 1e-3;
        }
      }
      if (fits) {
        explained = true;
        shares.insert(share);
        break;
      }
    }
    EXPECT_TRUE(explained);
  }
  EXPECT_GT(shares.size(), 300u);
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)).
TEST(MixUp, DrawsSharesFromBeta) {
  for (double alpha : {0.1, 0.4, 1.0}) {
    Array images(DType::kFloat32, Shape{2, 1}), labels(DType::kInt32, Shape{2});
    images.values<float>()[0] = 1;
    const Dataset data = Dataset::from_arrays({images, labels}).repeat(4000).batch(2);
    Pipeline pipeline(mix_up(data, {.alpha = alpha, .num_classes = 2}), {.seed = 4});
    double sum = 0, squares = 0, count = 0;
    for (Batch batch; pipeline.next(&batch); ++count) {
      const double share = batch.components[0].values<float>()[0];
      sum += share;
      squares += share * share;
    }
    const double mean = sum / count, variance = squares / count - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.03) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.015) << alpha;
  }
}

TEST(MixUp, DependsOnTheSeedAloneAndTakesPartialBatches) {
  const Dataset data = mix_up(samples(23).shuffle(23).repeat(3).batch(8), {.num_classes = 4});
  const auto alone = values_in(data);
  EXPECT_EQ(alone.size(), 69u * 6);
  EXPECT_EQ(alone, values_in(data, 1));
  EXPECT_EQ(alone, values_in(data, 4));
}

TEST(MixUp, MixturesOfBFloat16AreThoseOfFloat32Rounded) {
  constexpr int64_t kSize = 2500;
  Array images(DType::kFloat32, Shape{13, kSize}), labels(DType::kInt32, Shape{13});
  for (size_t i = 0; i < images.values<float>().size(); ++i)
    images.values<float>()[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i % 7);
  const Dataset batches = Dataset::from_arrays({images, labels}).shuffle(13).repeat(3).batch(4);
  Pipeline exact(mix_up(batches, {.num_classes = 2}), {.seed = 3});
  Pipeline narrow(mix_up(batches, {.num_classes = 2, .dtype = DType::kBFloat16}), {.seed = 3, .threads = 2});
  for (Batch batch, rounded; exact.next(&batch);) {
    ASSERT_TRUE(narrow.next(&rounded));
    ASSERT_EQ(rounded.components[0].type(), (TensorType{DType::kBFloat16, batch.components[0].shape()}));
    const auto expected = std::as_const(batch.components[0]).values<float>();
    const auto given = std::as_const(rounded.components[0]).values<BFloat16>();
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(given[i].bits, BFloat16(expected[i]).bits) << i;
    EXPECT_TRUE(std::ranges::equal(std::as_const(batch.components[1]).values<float>(),
                                   std::as_const(rounded.components[1]).values<float>()));
  }
}

TEST(MixUp, RefusesWhatCannotBe) {
  const Dataset batches = samples(8).batch(4);
  const Dataset rounded =
      Dataset::from_arrays({Array(DType::kBFloat16, {8, 2}), Array(DType::kInt32, {8})}).batch(4);
  EXPECT_THAT(message_of<InvalidArgument>([&] { mix_up(rounded, {.num_classes = 4}); }),
              testing::HasSubstr("MixUpOptions::dtype"));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { mix_up(batches, {.num_classes = 4, .dtype = DType::kInt32}); }),
      testing::HasSubstr("float32 or bfloat16"));
  EXPECT_THROW(mix_up(batches, {.alpha = 0, .num_classes = 4}), InvalidArgument);
  EXPECT_THROW(mix_up(batches, {.alpha = 1.5, .num_classes = 4}), InvalidArgument);
  EXPECT_THROW(mix_up(batches, {.num_classes = 1}), InvalidArgument);
  EXPECT_THROW(mix_up(samples(8), {.num_classes = 4}), InvalidArgument);
  EXPECT_THROW(values_in(mix_up(batches, {.num_classes = 3})), DataError);  // label 3
}

}  // namespace
}  // namespace mox::data
