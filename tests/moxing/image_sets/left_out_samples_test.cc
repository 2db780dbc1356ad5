// on_bad_sample: leave out. A sample that cannot be read has no substitute, and the others keep their names.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "moxing/formats/tf_example.h"
#include "moxing/formats/tfrecord.h"
#include "moxing/image_sets/image_files.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/data/findings.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::string small_jpeg(uint64_t seed) { return image::encode_jpeg(image::picture(20, 16, seed)); }

struct Samples {
  std::vector<std::string> names;
  std::vector<int32_t> labels;
  std::vector<float> pixels;
};

Samples samples_of(const Dataset& dataset, int threads = 1) {
  Samples samples;
  Pipeline pipeline(dataset.batch(4), {.threads = threads, .sample_names = true});
  for (Batch batch; pipeline.next(&batch);) {
    samples.names.insert(samples.names.end(), batch.names.begin(), batch.names.end());
    for (const float value : std::as_const(batch.components[0]).values<float>())
      samples.pixels.push_back(value);
    if (batch.components.size() < 2 || batch.components[1].dtype() != DType::kInt32) continue;
    for (const int32_t label : std::as_const(batch.components[1]).values<int32_t>())
      samples.labels.push_back(label);
  }
  return samples;
}

class LeftOutSamples : public testing::Test {
 protected:
  LeftOutSamples() {
    for (int i = 0; i < 12; ++i) directory_.write(name_of(i), small_jpeg(static_cast<uint64_t>(i)));
    options_.augmentation = {.height = 8, .width = 8};
    options_.on_bad_sample = OnBadSample::kLeaveOut;
    options_.bad_samples = std::make_shared<BadSamples>();
  }
  // Of class a four, of class b eight.
  static std::string name_of(int i) {
    return (i < 4 ? "set/a/" : "set/b/") + std::to_string(100 + i) + ".jpg";
  }
  void spoil(int i) const {
    directory_.write(name_of(i), small_jpeg(static_cast<uint64_t>(i)).substr(0, 100));
  }
  Dataset folder() const { return ImageClassificationRaw(directory_.file("set")).dataset(options_); }

  TemporaryDirectory directory_;
  ImageOptions options_;
};

TEST_F(LeftOutSamples, OfAFolder) {
  const Samples whole = samples_of(folder());
  EXPECT_EQ(whole.names.size(), 12U);
  EXPECT_EQ(options_.bad_samples->count(), 0);
  spoil(3);  // beside another class
  spoil(11);
  const ScopedConfiguration configuration({"--log_level=warning"});
  testing::internal::CaptureStderr();
  const Dataset dataset = folder();
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("2 of 12 samples cannot be read"), HasSubstr("set/a/103.jpg"), HasSubstr("other 10")));
  EXPECT_EQ(dataset.cardinality(), 10);
  const Samples rest = samples_of(dataset);
  EXPECT_THAT(rest.labels, ElementsAre(0, 0, 0, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(rest.names[2], EndsWith("a/102.jpg"));
  EXPECT_THAT(rest.names[3], EndsWith("b/104.jpg"));
  const auto size = static_cast<std::ptrdiff_t>(whole.pixels.size() / 12);
  std::vector<float> expected(whole.pixels.begin(), whole.pixels.begin() + 3 * size);
  expected.insert(expected.end(), whole.pixels.begin() + 4 * size, whole.pixels.begin() + 11 * size);
  EXPECT_EQ(rest.pixels, expected);
  EXPECT_EQ(options_.bad_samples->count(), 2);
  EXPECT_THAT(options_.bad_samples->reasons(), testing::Contains(HasSubstr("a/103.jpg")));
  EXPECT_EQ(take_findings(dataset), "") << "each rank has looked at all of them";
  EXPECT_EQ(samples_of(dataset.repeat(2)).labels.size(), 20U);
}

TEST_F(LeftOutSamples, WithAnyCacheAndNumberOfThreads) {
  spoil(3);
  const Samples expected = samples_of(folder(), 0);
  for (const ImageCache cache : {ImageCache::kMemory, ImageCache::kDirectory})
    for (int pass = 0; pass < 2; ++pass) {
      options_.cache = cache;
      options_.cache_directory = directory_.file("cache");
      const Samples kept = samples_of(folder(), 2);
      EXPECT_EQ(kept.pixels, expected.pixels);
      EXPECT_EQ(kept.labels, expected.labels);
      EXPECT_EQ(kept.names, expected.names);
    }
}

TEST_F(LeftOutSamples, AreLimited) {
  const auto message = [&] { return message_of<DataError>([&] { folder(); }); };
  spoil(0);
  spoil(1);
  EXPECT_EQ(samples_of(folder()).labels.size(), 10U);
  options_.max_bad_samples = 1;
  EXPECT_THAT(message(), HasSubstr("more than the limit of 1"));
  options_.max_bad_samples = 100;
  spoil(2);
  EXPECT_THAT(message(), AllOf(HasSubstr("of the 4 images of class 'a'"), HasSubstr("data.max_bad_share")));
  options_.max_bad_share = 1;
  for (int i = 0; i < 12; ++i) spoil(i);
  EXPECT_THAT(message(), HasSubstr("no sample of the data set can be read"));
}

TEST_F(LeftOutSamples, WhatIsSpoiltLaterIsAnError) {
  spoil(3);
  const Dataset dataset = folder();
  spoil(4);
  EXPECT_THAT(message_of<DataError>([&] { samples_of(dataset); }),
              AllOf(HasSubstr("b/104.jpg"), HasSubstr("when the data set was made it could be read")));
}

TEST_F(LeftOutSamples, OfFilesWithoutLabels) {
  spoil(1);
  const Dataset files = image_files(list_image_files(directory_.file("set/a")), options_);
  EXPECT_THAT(samples_of(files).names,
              ElementsAre(EndsWith("a/100.jpg"), EndsWith("a/102.jpg"), EndsWith("a/103.jpg")));
}

TEST_F(LeftOutSamples, OfRecords) {
  const auto records = [&](int bad) {
    TfRecordWriter writer(directory_.file("r"));
    for (int i = 0; i < 12; ++i) {
      const std::string encoded =
          i % 2 == 1 && i / 2 < bad ? "no image" : small_jpeg(static_cast<uint64_t>(i));
      const std::string bytes = serialize_example({{"image/encoded", std::vector<std::string>{encoded}},
                                                   {"image/class/label", std::vector<int64_t>{i % 2}}});
      writer.write(as_bytes(std::string_view(bytes)));
    }
    writer.close();
    return image_classification_tfrecord(directory_.file("r"), {.image = options_, .num_classes = 2});
  };
  EXPECT_THAT(samples_of(records(3)).labels, ElementsAre(0, 0, 0, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(message_of<DataError>([&] { records(4); }), HasSubstr("4 of the 6 images of class 1"));
}

}  // namespace
}  // namespace mox::data
