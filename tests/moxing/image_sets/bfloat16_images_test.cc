// Data sets of bfloat16 images: every batch is the float32 one, rounded, whatever makes it.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "moxing/formats/cifar.h"
#include "moxing/image_sets/get_dataset.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/image_sets/image_records.h"
#include "runtime/base/error.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::HasSubstr;

class BFloat16Images : public testing::Test {
 protected:
  static constexpr int64_t kImages = 14;

  BFloat16Images() {
    for (int i = 0; i < kImages; ++i)
      directory_.write("set/train/" + std::string(i % 3 ? "a/" : "b/") + std::to_string(i) + ".jpg",
                       image::encode_jpeg(image::picture(60 + i, 50, static_cast<uint64_t>(i))));
  }

  ImageOptions options(DType dtype, ImageCache cache = ImageCache::kNone,
                       CacheContent content = CacheContent::kDecoded) const {
    ImageOptions options;
    options.augmentation = {.height = 17,
                            .width = 21,
                            .crop = image::Crop::kRandomResized,
                            .flip = true,
                            .cut_out = 4,
                            .mean = {0.5f, 0.4f, 0.3f},
                            .stddev = {0.2f, 0.3f, 0.4f}};
    options.dtype = dtype;
    options.cache = cache;
    options.cache_content = content;
    options.cache_directory = directory_.file("cache");
    return options;
  }
  Dataset folder(const ImageOptions& options) const {
    return ImageClassificationRaw(directory_.file("set/train")).dataset(options);
  }

  static Dataset batches(const Dataset& samples) { return samples.shuffle(kImages).repeat(2).batch(5); }

  // All batches of `narrow`, of any number of threads, are those of `exact`, rounded; other
  // components are equal.
  static void expect_rounded(const Dataset& exact, const Dataset& narrow) {
    ASSERT_EQ(narrow.signature()[0].dtype, DType::kBFloat16);
    for (const int threads : {0, 1, 2, 8}) {
      Pipeline first(batches(exact), {.seed = 5, .threads = 2});
      Pipeline second(batches(narrow), {.seed = 5, .threads = threads});
      Batch expected, given;
      while (first.next(&expected)) {
        ASSERT_TRUE(second.next(&given));
        expect_rounded(expected, given);
      }
      EXPECT_FALSE(second.next(&given));
      EXPECT_EQ(first.statistics().samples, second.statistics().samples);
    }
  }

  static void expect_rounded(const Batch& expected, const Batch& given) {
    ASSERT_EQ(given.size, expected.size);
    ASSERT_EQ(given.components[0].type(), (TensorType{DType::kBFloat16, expected.components[0].shape()}));
    const auto exact = std::as_const(expected.components[0]).values<float>();
    const auto narrow = std::as_const(given.components[0]).values<BFloat16>();
    for (size_t i = 0; i < exact.size(); ++i) ASSERT_EQ(narrow[i].bits, BFloat16(exact[i]).bits) << i;
    EXPECT_TRUE(std::ranges::equal(expected.components[1].as_bytes(), given.components[1].as_bytes()));
  }

  TemporaryDirectory directory_;
};

TEST_F(BFloat16Images, FromAFolder) {
  expect_rounded(folder(options(DType::kFloat32)), folder(options(DType::kBFloat16)));
}

// Both dtypes use one directory in turn: what it keeps has no dtype.
TEST_F(BFloat16Images, FromAnyCache) {
  for (const ImageCache cache : {ImageCache::kMemory, ImageCache::kDirectory})
    for (const CacheContent content :
         {CacheContent::kDecoded, CacheContent::kResized, CacheContent::kBytes}) {
      SCOPED_TRACE(static_cast<int>(content));
      expect_rounded(folder(options(DType::kFloat32, cache, content)),
                     folder(options(DType::kBFloat16, cache, content)));
    }
  expect_rounded(folder(options(DType::kFloat32)).cache(), folder(options(DType::kBFloat16)).cache());
}

TEST_F(BFloat16Images, FromRecordsAndManyLabelsAndByName) {
  convert_image_folder(ImageClassificationRaw(directory_.file("set/train")), directory_.file("records/train"),
                       {.shards = 2});
  const auto records = [&](DType dtype) {
    return image_classification_tfrecord(directory_.file("records/train-*"), {.image = options(dtype)});
  };
  expect_rounded(records(DType::kFloat32), records(DType::kBFloat16));
  for (int i = 0; i < kImages; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    directory_.write("many/images/" + name,
                     image::encode_jpeg(image::picture(30, 30, static_cast<uint64_t>(i))));
    directory_.write("many/labels/" + name + ".txt", i % 2 ? "odd\n" : "even\nround\n");
  }
  const MultilabelClassificationRaw many(directory_.file("many"));
  expect_rounded(many.dataset(options(DType::kFloat32)), many.dataset(options(DType::kBFloat16)));
  expect_rounded(get_dataset("flowers", "train", directory_.file("set"), options(DType::kFloat32)),
                 get_dataset("flowers", "train", directory_.file("set"), options(DType::kBFloat16)));
}

TEST_F(BFloat16Images, FromCifar) {
  std::string records;
  for (int i = 0; i < kImages; ++i) {
    records += static_cast<char>(i % 10);
    for (int at = 0; at < 3072; ++at) records += static_cast<char>(at * 7 + i * at / 5);
  }
  directory_.write("cifar/test_batch.bin", records);
  const auto cifar = [&](DType dtype) {
    return cifar10(directory_.file("cifar"), "test",
                   {.augmentation = {.height = 32, .width = 32, .crop = image::Crop::kPadded, .flip = true},
                    .dtype = dtype});
  };
  expect_rounded(cifar(DType::kFloat32), cifar(DType::kBFloat16));
  ImageOptions by_name;
  by_name.augmentation = {.height = 32, .width = 32};
  by_name.dtype = DType::kBFloat16;
  EXPECT_EQ(get_dataset("cifar10", "test", directory_.file("cifar"), by_name).signature()[0].dtype,
            DType::kBFloat16);
  EXPECT_THROW(cifar(DType::kUInt8), InvalidArgument);
}

TEST_F(BFloat16Images, WithASubstituteForABadOne) {
  directory_.write("set/train/a/4.jpg", "no image");
  const auto skipping = [&](DType dtype) {
    ImageOptions all = options(dtype);
    all.on_bad_sample = OnBadSample::kSkip;
    return folder(all);
  };
  expect_rounded(skipping(DType::kFloat32), skipping(DType::kBFloat16));
  EXPECT_THAT(message_of<DataError>([&] {
                Pipeline pipeline(batches(folder(options(DType::kBFloat16))), {});
                for (Batch batch; pipeline.next(&batch);) continue;
              }),
              HasSubstr("set/train/a/4.jpg"));
}

TEST_F(BFloat16Images, OtherTypesAreRefused) {
  for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kBool})
    EXPECT_THAT(message_of<InvalidArgument>([&] { folder(options(dtype)); }),
                HasSubstr("dtype must be float32 or bfloat16"));
}

// A run that goes on in another precision goes on at its place.
TEST_F(BFloat16Images, TakeUpAPositionOfFloat32) {
  for (const bool narrow_first : {false, true}) {
    const Dataset exact = batches(folder(options(DType::kFloat32)));
    const Dataset narrow = batches(folder(options(DType::kBFloat16)));
    Batch expected, given;
    Pipeline whole(exact, {.seed = 5});
    Pipeline before(narrow_first ? narrow : exact, {.seed = 5});
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(whole.next(&expected));
      ASSERT_TRUE(before.next(&given));
    }
    Pipeline after(narrow_first ? exact : narrow, {.seed = 5}, before.cursor());
    ASSERT_TRUE(whole.next(&expected));
    ASSERT_TRUE(after.next(&given));
    if (narrow_first)
      EXPECT_TRUE(std::ranges::equal(expected.components[0].as_bytes(), given.components[0].as_bytes()));
    else
      expect_rounded(expected, given);
  }
  const Dataset other =
      batches(folder(options(DType::kBFloat16)).map([](const Element& sample) { return sample; }));
  Pipeline before(batches(folder(options(DType::kFloat32))), {.seed = 5});
  EXPECT_THAT(message_of<FailedPrecondition>([&] { Pipeline(other, {.seed = 5}, before.cursor()); }),
              HasSubstr("belongs to another data set"));
}

}  // namespace
}  // namespace mox::data
