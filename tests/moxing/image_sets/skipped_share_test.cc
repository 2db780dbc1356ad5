// on_bad_sample: skip must not swallow a class.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/formats/tf_example.h"
#include "moxing/formats/tfrecord.h"
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
using testing::HasSubstr;

ImageOptions skipping(double max_bad_share = ImageOptions().max_bad_share) {
  ImageOptions options{.augmentation = {.height = 8, .width = 8}};
  options.on_bad_sample = OnBadSample::kSkip;
  options.max_bad_share = max_bad_share;
  return options;
}

int64_t samples_of(const Dataset& dataset) {
  Pipeline pipeline(dataset.batch(4), {});
  int64_t samples = 0;
  for (Batch batch; pipeline.next(&batch);) samples += batch.size;
  return samples;
}

std::string small_jpeg(uint64_t seed) { return image::encode_jpeg(image::picture(20, 16, seed)); }

// Class a of four files, class b of eight, of which the first are bad.
Dataset folder_of(const TemporaryDirectory& directory, int bad_in_a, int bad_in_b,
                  const ImageOptions& options) {
  for (int i = 0; i < 12; ++i) {
    const bool in_a = i < 4;
    const bool bad = in_a ? i < bad_in_a : i - 4 < bad_in_b;
    directory.write((in_a ? "set/a/" : "set/b/") + std::to_string(i) + ".jpg",
                    bad ? "no image" : small_jpeg(static_cast<uint64_t>(i)));
  }
  return ImageClassificationRaw(directory.file("set")).dataset(options);
}

TEST(SkippedShare, OfAClassOfAFolder) {
  const TemporaryDirectory directory;
  EXPECT_EQ(samples_of(folder_of(directory, 2, 4, skipping()).repeat(2)), 24);  // half of each
  EXPECT_THAT(message_of<DataError>([&] { samples_of(folder_of(directory, 3, 0, skipping())); }),
              AllOf(HasSubstr("3 of the 4 images of class 'a'"), HasSubstr("data.max_bad_share"),
                    HasSubstr("set/a/0.jpg")));
  EXPECT_EQ(samples_of(folder_of(directory, 4, 0, skipping(1))), 12);
  EXPECT_THAT(message_of<DataError>([&] { samples_of(folder_of(directory, 0, 1, skipping(0))); }),
              HasSubstr("1 of the 8 images of class 'b'"));
  EXPECT_THROW(folder_of(directory, 0, 0, skipping(1.5)), InvalidArgument);
}

// Images may have several labels: a rare one must not vanish with its few images.
TEST(SkippedShare, OfALabelOfImagesWithMany) {
  const TemporaryDirectory directory;
  const auto folder = [&](int bad_rare) {
    for (int i = 0; i < 12; ++i) {
      const std::string name = std::to_string(i) + ".jpg";
      directory.write("set/images/" + name, i < bad_rare ? "no image" : small_jpeg(static_cast<uint64_t>(i)));
      directory.write("set/labels/" + name + ".txt",
                      std::string(i < 11 ? "common\n" : "") + (i < 2 ? "rare\nrare\n" : ""));
    }
    return MultilabelClassificationRaw(directory.file("set")).dataset(skipping());
  };
  EXPECT_EQ(samples_of(folder(0).repeat(2)), 24);
  EXPECT_EQ(samples_of(folder(1).repeat(2)), 24);  // half of them
  EXPECT_THAT(message_of<DataError>([&] { samples_of(folder(2)); }),
              AllOf(HasSubstr("2 of the 2 images of class 'rare'"), HasSubstr("images/")));
}

// The first error may go with a batch that was read ahead and that nobody asks for.
TEST(SkippedShare, IsAnErrorForEverySampleThatIsMetAgain) {
  const TemporaryDirectory directory;
  const Dataset folder = folder_of(directory, 3, 0, skipping());
  for (int pass = 0; pass < 2; ++pass)
    EXPECT_THAT(message_of<DataError>([&] { samples_of(folder.take(4)); }),
                HasSubstr("3 of the 4 images of class 'a'"));
  BadSamples samples;
  samples.add(7, "cut", 1);
  for (int pass = 0; pass < 2; ++pass) EXPECT_THROW(samples.add(8, "cut", 1), DataError);
  EXPECT_EQ(samples.count(), 2);
}

// `bad` of class 1, which has every other record, cannot be read.
Dataset records_in(const TemporaryDirectory& directory, int count, int bad) {
  TfRecordWriter writer(directory.file("r"));
  for (int i = 0; i < count; ++i) {
    const std::string encoded = i % 2 == 1 && i / 2 < bad ? "no image" : small_jpeg(static_cast<uint64_t>(i));
    const std::string bytes = serialize_example({{"image/encoded", std::vector<std::string>{encoded}},
                                                 {"image/class/label", std::vector<int64_t>{i % 2}}});
    writer.write(as_bytes(std::string_view(bytes)));
  }
  writer.close();
  return image_classification_tfrecord(directory.file("r"), {.image = skipping(), .num_classes = 2});
}

// The labels of records are known as they are read: a class is judged after a pass, or 20 bad ones.
TEST(SkippedShare, OfAClassOfRecords) {
  const TemporaryDirectory directory;
  const auto records = [&](int count, int bad) { return records_in(directory, count, bad); };
  EXPECT_EQ(samples_of(records(12, 3).repeat(2)), 24);
  EXPECT_THAT(message_of<DataError>([&] { samples_of(records(12, 4)); }),
              HasSubstr("4 of the 6 images of class 1 that were read so far"));
  EXPECT_THAT(message_of<DataError>([&] { samples_of(records(100, 30).take(60)); }),
              HasSubstr("20 of the 20 images of class 1 that were read so far"));
}

// Two ranks, neither of which meets enough of them by itself.
TEST(SkippedShare, OfWhatAnotherRankHasRead) {
  const TemporaryDirectory directory;
  ImageOptions options = skipping(0.4);
  options.bad_samples = std::make_shared<BadSamples>();
  folder_of(directory, 0, 0, options);
  for (const char* name : {"set/a/0.jpg", "set/a/2.jpg"}) directory.write(name, "no image");
  const ImageClassificationRaw folder(directory.file("set"));
  const Dataset one = folder.dataset(options), other = folder.dataset(skipping(0.4));
  EXPECT_EQ(take_findings(one), "");
  samples_of(one.take(1));
  samples_of(other.skip(2));
  const std::string found = take_findings(one), found_by_other = take_findings(other);
  EXPECT_EQ(take_findings(one), "");  // told once
  EXPECT_EQ(options.bad_samples->count(), 1);
  for (const auto& [dataset, findings] : {std::pair(one, found_by_other), {other, found}})
    EXPECT_THAT(message_of<DataError>(
                    [&dataset = dataset, &findings = findings] { add_findings(dataset, findings); }),
                HasSubstr("2 of the 4 images of class 'a'"));
  EXPECT_EQ(options.bad_samples->count(), 2);
  EXPECT_EQ(take_findings(one), "");  // what others have told is not told on
  options.max_bad_samples = 1;
  options.bad_samples = nullptr;
  const Dataset strict = folder.dataset(options);
  samples_of(strict.take(1));
  EXPECT_THAT(message_of<DataError>([&] { add_findings(strict, found_by_other); }),
              HasSubstr("2 samples cannot be read, more than the limit of 1"));
  for (const char* text : {"nonsense", "0 4:", "1 3:abc", "0 3:abc", "0 8:12 0 0 0:", "0 9:0 0 0 90:x"})
    EXPECT_THROW(add_findings(one, text), DataError) << text;
}

// The sizes of classes come from the samples that all have read.
TEST(SkippedShare, OfRecordsThatOtherRanksHaveRead) {
  const TemporaryDirectory directory;
  const Dataset one = records_in(directory, 12, 4), other = records_in(directory, 12, 4);
  samples_of(one.take(4));
  samples_of(other.skip(4));
  const std::string found = take_findings(one), found_by_other = take_findings(other);
  for (const auto& [dataset, findings] : {std::pair(one, found_by_other), {other, found}})
    EXPECT_THAT(message_of<DataError>(
                    [&dataset = dataset, &findings = findings] { add_findings(dataset, findings); }),
                HasSubstr("4 of the 6 images of class 1 that were read so far"));
}

}  // namespace
}  // namespace mox::data
