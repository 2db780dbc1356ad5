// Photographs in the same order with the same bits, however many threads and ranks make the batches, and
// wherever a run is taken up again.
#include <gtest/gtest.h>

#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/random.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

constexpr int64_t kImages = 24, kEpochs = 3;

struct Sample {
  std::vector<float> image;
  int32_t label;
  bool operator==(const Sample&) const = default;
};

class ExactOrder : public testing::TestWithParam<bool> {
 protected:
  // The set as a folder or as records, with every kind of random augmentation.
  Dataset images() const {
    ImageOptions options;
    options.augmentation = {.height = 12,
                            .width = 12,
                            .crop = image::Crop::kRandomResized,
                            .flip = true,
                            .jitter = {.brightness = 0.2f, .contrast = 0.2f, .saturation = 0.2f, .hue = 0.1f},
                            .cut_out = 4};
    const ImageClassificationRaw folder(directory_.file("set"));
    if (GetParam()) return folder.dataset(options);
    convert_image_folder(folder, directory_.file("records/set"), {.shards = 3});
    ImageRecordOptions records;
    records.image = options;
    return image_classification_tfrecord(directory_.file("records/set-*-of-*"), records);
  }

  ExactOrder() {
    for (int64_t i = 0; i < kImages; ++i)
      directory_.write(
          "set/" + std::string(i % 3 ? "a/" : "b/") + std::to_string(i) + ".jpg",
          image::encode_jpeg(image::picture(40 + static_cast<int>(i), 36, static_cast<uint64_t>(i))));
  }

  static void append(const Batch& batch, std::vector<Sample>* samples) {
    const auto images = batch.components[0].values<float>();
    const auto labels = batch.components[1].values<int32_t>();
    const size_t size = images.size() / labels.size();
    for (size_t i = 0; i < labels.size(); ++i)
      samples->push_back({{&images[i * size], &images[i * size] + size}, labels[i]});
  }

  static std::vector<Sample> run(const Dataset& batches, int threads) {
    std::vector<Sample> samples;
    Pipeline pipeline(batches, {.seed = 11, .threads = threads});
    for (Batch batch; pipeline.next(&batch);) append(batch, &samples);
    return samples;
  }

  TemporaryDirectory directory_;
};

TEST_P(ExactOrder, IsThatOfAnyNumberOfThreads) {
  const Dataset batches = images().shuffle(kImages).repeat(kEpochs).batch(5);
  const auto expected = run(batches, 1);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kImages * kEpochs));
  EXPECT_NE(expected[0], expected[kImages]);  // epochs differ
  for (int threads : {0, 2, 8}) EXPECT_EQ(run(batches, threads), expected) << threads;
}

// Rank r of n takes every n-th sample: the ranks' batches side by side are the batch of one.
TEST_P(ExactOrder, IsThatOfAnyNumberOfRanks) {
  const Dataset order = images().shuffle(kImages).repeat(kEpochs);
  const auto expected = run(order.batch(4), 1);
  for (int64_t ranks : {2, 4}) {
    std::vector<Sample> merged(expected.size());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto part = run(order.shard(rank, ranks).batch(4 / ranks), 2);
      ASSERT_EQ(part.size() * static_cast<size_t>(ranks), expected.size());
      for (size_t i = 0; i < part.size(); ++i)
        merged[i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)] = part[i];
    }
    EXPECT_EQ(merged, expected) << ranks;
  }
}

TEST_P(ExactOrder, GoesOnAfterFiftyRandomStops) {
  const Dataset batches = images().shuffle(kImages).repeat().batch(5);
  const RandomStream random(1, 2);
  std::vector<Sample> expected, resumed;
  constexpr size_t kSteps = 180;
  Pipeline whole(batches, {.seed = 11, .threads = 2});
  Batch batch;
  for (size_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(whole.next(&batch));
    append(batch, &expected);
  }
  std::string cursor;
  int starts = 0;
  for (size_t step = 0; step < kSteps; ++starts) {
    Pipeline pipeline(
        batches,
        {.seed = 11, .threads = static_cast<int>(random.below(2 * static_cast<uint64_t>(starts), 4))},
        cursor);
    const size_t more = 1 + random.below(2 * static_cast<uint64_t>(starts) + 1, 5);
    for (size_t i = 0; i < more && step < kSteps; ++i, ++step) {
      ASSERT_TRUE(pipeline.next(&batch));
      append(batch, &resumed);
    }
    cursor = pipeline.cursor();
  }
  EXPECT_GE(starts, 50);
  EXPECT_EQ(resumed, expected);
}

INSTANTIATE_TEST_SUITE_P(Formats, ExactOrder, testing::Bool(),
                         [](const auto& form) { return form.param ? "Folder" : "Records"; });

}  // namespace
}  // namespace mox::data
