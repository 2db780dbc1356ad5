// Caches of images: the same samples with and without, whatever happens to the cache.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "moxing/config/init.h"
#include "moxing/image_sets/image_folder.h"
#include "moxing/job/data_memory.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::data {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class ImageCacheTest : public testing::Test {
 protected:
  ImageCacheTest() {
    for (int i = 0; i < 6; ++i)
      directory_.write("set/" + std::string(i % 2 ? "rose/" : "daisy/") + std::to_string(i) + ".jpg",
                       image::encode_jpeg(image::picture(60 + i, 50, static_cast<uint64_t>(i))));
  }

  ImageOptions options(ImageCache cache = ImageCache::kNone) const {
    ImageOptions options;
    options.augmentation = {.height = 16, .width = 16, .crop = image::Crop::kRandomResized, .flip = true};
    options.cache = cache;
    if (cache == ImageCache::kDirectory) options.cache_directory = cache_;
    return options;
  }

  // Every number of two shuffled passes.
  std::vector<float> samples(const ImageOptions& options, int threads = 2) const {
    const ImageClassificationRaw folder(directory_.file("set"));
    Pipeline pipeline(folder.dataset(options).shuffle(6).repeat(2).batch(4), {.seed = 5, .threads = threads});
    std::vector<float> all;
    for (Batch batch; pipeline.next(&batch);) {
      for (float value : batch.components[0].values<float>()) all.push_back(value);
      for (int32_t label : batch.components[1].values<int32_t>()) all.push_back(static_cast<float>(label));
    }
    return all;
  }

  void replace_image() const {
    directory_.write("set/daisy/0.jpg", image::encode_jpeg(image::picture(64, 64, 99)));
  }

  TemporaryDirectory directory_;
  const std::string cache_ = directory_.file("cache"), bin_ = cache_ + "/copy-1/images.bin",
                    manifest_ = cache_ + "/copy-1/manifest.txt";
};

TEST_F(ImageCacheTest, MemoryGivesTheSameSamples) {
  const auto expected = samples(options());
  EXPECT_EQ(samples(options(ImageCache::kMemory)), expected);
  ImageOptions small = options(ImageCache::kMemory);
  small.cache_bytes = 20'000;  // two of the images
  EXPECT_EQ(samples(small), expected);
}

// A run holds data_memory_mb once, whoever holds it.
TEST_F(ImageCacheTest, MemoryIsOfTheBudgetOfTheRunsPipelines) {
  for (int i = 0; i < 6; ++i)  // decoded, 120,000 bytes each
    directory_.write("large/rose/" + std::to_string(i) + ".jpg",
                     image::encode_jpeg(image::picture(200, 200, static_cast<uint64_t>(i))));
  const ScopedConfiguration configured({"--data_memory_mb=1"});
  const auto budget = mox::internal::data_memory_of_process();
  Pipeline images(
      ImageClassificationRaw(directory_.file("large")).dataset(options(ImageCache::kMemory)).batch(6),
      {.seed = 5, .threads = 0, .memory_budget = budget});
  Batch batch;
  ASSERT_TRUE(images.next(&batch));
  const Dataset numbers = Dataset::from_arrays({Array(DType::kFloat32, {100, 1024})}).cache().batch(1);
  try {
    const Pipeline other(numbers, {.memory_budget = budget});
    FAIL() << "400 KiB beside the images are more than 1 MiB";
  } catch (const FailedPrecondition& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("cache (image_sets/image_cache_test.cc"),
                               HasSubstr("409700 bytes or more beside 7"), HasSubstr("kept images and rows"),
                               HasSubstr("raise data_memory_mb")));
  }
}

TEST_F(ImageCacheTest, DirectoryGivesTheSameSamplesInThisRunAndTheNext) {
  const auto expected = samples(options());
  EXPECT_EQ(samples(options(ImageCache::kDirectory), 0), expected);
  const auto bytes = fs::file_size(bin_);
  EXPECT_EQ(bytes, (60u + 61 + 62 + 63 + 64 + 65) * 50 * 3 + 6 * 4);
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
  EXPECT_EQ(fs::file_size(bin_), bytes);  // nothing was decoded again
}

// What the second run gives comes from the cache: a changed byte that its checksum does not see would show.
TEST_F(ImageCacheTest, FlippedBytesAreFoundAndTheImageIsDecodedAgain) {
  const auto expected = samples(options(ImageCache::kDirectory));
  std::string content = read_file(bin_);
  for (size_t at : {size_t{2}, size_t{5000}, content.size() - 3}) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file_atomically(bin_, damaged);
    EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected) << at;
  }
}

TEST_F(ImageCacheTest, TruncatedAndUnfinishedCachesAreMadeAnew) {
  const auto expected = samples(options(ImageCache::kDirectory));
  fs::resize_file(bin_, 20'000);
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
  fs::remove(manifest_);  // as a killed run leaves it
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
  std::string manifest = read_file(manifest_);
  manifest[manifest.size() / 2] ^= 1;
  write_file_atomically(manifest_, manifest);
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
}

TEST_F(ImageCacheTest, AForeignCacheIsMadeAnew) {
  samples(options(ImageCache::kDirectory));
  replace_image();
  const auto expected = samples(options());
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
}

// Sizes and times of modification alone do not tell the files: pixels of before would have labels of now.
TEST_F(ImageCacheTest, OfDirectoriesThatHaveChangedPlacesIsMadeAnew) {
  for (const char* name :
       {"rose/1.jpg", "rose/3.jpg", "rose/5.jpg", "daisy/1.jpg", "daisy/3.jpg", "daisy/5.jpg"}) {
    std::string bytes = image::encode_jpeg(image::picture(60, 50, name[0]));
    bytes.resize(20'000);  // what follows a JPEG is not looked at
    directory_.write(std::string("set/") + name, bytes);
  }
  for (const char* name : {"0.jpg", "2.jpg", "4.jpg"})
    fs::remove(directory_.file(std::string("set/daisy/") + name));
  const auto age = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(directory_.file("set")))
      fs::last_write_time(entry.path(), fs::file_time_type(std::chrono::hours(1)));
  };
  age();
  const auto before = samples(options(ImageCache::kDirectory));
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), before);
  fs::rename(directory_.file("set/rose"), directory_.file("other"));
  fs::rename(directory_.file("set/daisy"), directory_.file("set/rose"));
  fs::rename(directory_.file("other"), directory_.file("set/daisy"));
  const auto expected = samples(options());
  EXPECT_NE(expected, before);
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
  // Of a file that was written over, and given its time of before.
  std::string bytes = image::encode_jpeg(image::picture(60, 50, 7));
  bytes.resize(20'000);
  directory_.write("set/rose/3.jpg", bytes);
  age();
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), samples(options()));
}

TEST_F(ImageCacheTest, IsRemovedOnFinish) {
  ImageOptions removed = options(ImageCache::kDirectory);
  removed.remove_cache_on_finish = true;
  samples(removed);
  EXPECT_FALSE(fs::exists(cache_));
}

// As the ranks of a job on one machine do.
TEST_F(ImageCacheTest, WhoUsesItAtTheSameTimeHasACopy) {
  const auto expected = samples(options());
  ImageOptions removed = options(ImageCache::kDirectory);
  removed.remove_cache_on_finish = true;
  const ImageClassificationRaw folder(directory_.file("set"));
  {
    const Dataset first = folder.dataset(removed);
    EXPECT_EQ(samples(options(ImageCache::kDirectory)), expected);
    EXPECT_TRUE(fs::exists(cache_ + "/copy-2/manifest.txt"));
    EXPECT_FALSE(fs::exists(manifest_));
  }
  EXPECT_FALSE(fs::exists(cache_ + "/copy-1"));
  EXPECT_TRUE(fs::exists(cache_ + "/copy-2/manifest.txt"));  // not the first one's to remove
}

TEST_F(ImageCacheTest, BytesGiveTheSameSamplesToo) {
  for (const ImageCache place : {ImageCache::kMemory, ImageCache::kDirectory}) {
    ImageOptions bytes = options(place);
    bytes.cache_content = CacheContent::kBytes;
    for (const bool fast : {false, true}) {
      ImageOptions plain = options();
      plain.augmentation.fast_decode = bytes.augmentation.fast_decode = fast;
      EXPECT_EQ(samples(bytes), samples(plain));
    }
  }
  uint64_t encoded = 0;
  for (const auto& file : fs::recursive_directory_iterator(directory_.file("set")))
    if (file.is_regular_file()) encoded += file.file_size();
  EXPECT_EQ(fs::file_size(bin_), encoded + 6 * 4);
  // What is kept of one kind is not taken for the other.
  EXPECT_EQ(samples(options(ImageCache::kDirectory)), samples(options()));
  EXPECT_GT(fs::file_size(bin_), 6u * 50 * 60 * 3);
}

class ResizedCacheTest : public ImageCacheTest {
 protected:
  ImageOptions resized(ImageCache place, int shorter) const {
    ImageOptions result = options(place);
    result.cache_content = CacheContent::kResized;
    result.resized_shorter = shorter;
    return result;
  }
};

// Whatever is kept, and wherever: also where two of the images fit.
TEST_F(ResizedCacheTest, SamplesDoNotDependOnWhatIsKept) {
  const auto expected = samples(resized(ImageCache::kMemory, 24));
  EXPECT_NE(expected, samples(options()));
  ImageOptions small = resized(ImageCache::kMemory, 24);
  small.cache_bytes = 5'000;
  EXPECT_EQ(samples(small), expected);
  small.cache_bytes = 0;
  EXPECT_EQ(samples(small, 0), expected);
  EXPECT_EQ(samples(resized(ImageCache::kDirectory, 24)), expected);
  EXPECT_EQ(samples(resized(ImageCache::kDirectory, 24)), expected);
  // 60 to 65 x 50 pixels become 29 to 31 x 24.
  EXPECT_EQ(fs::file_size(bin_), (29u + 29 + 30 + 30 + 31 + 31) * 24 * 3 + 6 * 4);
}

TEST_F(ResizedCacheTest, OfAnotherSizeIsMadeAnew) {
  samples(resized(ImageCache::kDirectory, 24));
  const auto expected = samples(resized(ImageCache::kMemory, 30));
  EXPECT_EQ(samples(resized(ImageCache::kDirectory, 30)), expected);
}

TEST_F(ResizedCacheTest, LeavesSmallImagesAlone) {
  EXPECT_EQ(samples(resized(ImageCache::kMemory, 50)), samples(options()));
}

TEST_F(ResizedCacheTest, IsExactForTheCentreOfTheSameSize) {
  ImageOptions centre = resized(ImageCache::kMemory, 0);
  centre.augmentation.crop = image::Crop::kCentre;
  centre.augmentation.resize_shorter = centre.augmentation.resize_shorter_max = 24;
  ImageOptions plain = centre;
  plain.cache = ImageCache::kNone;
  EXPECT_EQ(samples(centre), samples(plain));
}

// The default keeps 8/7 of the network's 16 pixels.
TEST_F(ResizedCacheTest, KeepsALittleMoreThanTheNetworkTakes) {
  samples(resized(ImageCache::kDirectory, 0));
  EXPECT_EQ(fs::file_size(bin_), (22u + 22 + 22 + 23 + 23 + 23) * 18 * 3 + 6 * 4);
}

// Later passes trust the file, but for its length.
TEST_F(ImageCacheTest, CutOffInTheMiddleOfARunIsMadeAgain) {
  const ImageClassificationRaw folder(directory_.file("set"));
  const auto pass = [](Pipeline& pipeline) {
    Batch batch;
    EXPECT_TRUE(pipeline.next(&batch));
    const auto values = batch.components[0].values<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  Pipeline plain(folder.dataset(options()).repeat(4).batch(6), {.seed = 5, .threads = 0});
  Pipeline cached(folder.dataset(options(ImageCache::kDirectory)).repeat(4).batch(6),
                  {.seed = 5, .threads = 0});
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    if (i == 2) fs::resize_file(bin_, 20'000);
    EXPECT_EQ(pass(cached), pass(plain));
  }
}

// The second pass does not need the files.
TEST_F(ImageCacheTest, BytesComeFromTheCache) {
  ImageOptions bytes = options(ImageCache::kMemory);
  bytes.cache_content = CacheContent::kBytes;
  const ImageClassificationRaw folder(directory_.file("set"));
  Pipeline pipeline(folder.dataset(bytes).repeat(2).batch(6), {.threads = 0});
  Batch batch;
  ASSERT_TRUE(pipeline.next(&batch));
  fs::remove_all(directory_.file("set"));
  EXPECT_TRUE(pipeline.next(&batch));
}

TEST_F(ImageCacheTest, RefusesWhatCannotBe) {
  const ImageClassificationRaw folder(directory_.file("set"));
  ImageOptions fast = options(ImageCache::kMemory);
  fast.augmentation.fast_decode = true;
  EXPECT_THAT(message_of<InvalidArgument>([&] { folder.dataset(fast); }), HasSubstr("fast_decode"));
  fast.cache_content = CacheContent::kResized;
  EXPECT_THAT(message_of<InvalidArgument>([&] { folder.dataset(fast); }), HasSubstr("fast_decode"));
  ImageOptions negative = options(ImageCache::kMemory);
  negative.resized_shorter = -1;
  EXPECT_THAT(message_of<InvalidArgument>([&] { folder.dataset(negative); }), HasSubstr("resized_shorter"));
  ImageOptions nowhere = options(ImageCache::kDirectory);
  nowhere.cache_directory = "";
  EXPECT_THAT(message_of<InvalidArgument>([&] { folder.dataset(nowhere); }), HasSubstr("cache_directory"));
  EXPECT_THROW(image_cache_from_string("disk"), InvalidArgument);
  EXPECT_THROW(cache_content_from_string("pixels"), InvalidArgument);
}

// A bad image is as bad with a cache.
TEST_F(ImageCacheTest, NamesBadImages) {
  directory_.write("set/rose/1.jpg", "no image");
  EXPECT_THAT(message_of<DataError>([&] { samples(options(ImageCache::kMemory)); }), HasSubstr("rose/1.jpg"));
}

}  // namespace
}  // namespace mox::data
