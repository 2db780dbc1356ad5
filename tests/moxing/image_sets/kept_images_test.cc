// What keeps images, in memory and in a directory, without those who use it.
#include "moxing/image_sets/internal/kept_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/moxing/image/images.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_directory.h"

namespace mox::data::internal {
namespace {

constexpr int kWidth = 13, kHeight = 9;

KeptImage pixels(uint64_t seed) { return {planar(image::picture(kWidth, kHeight, seed)), {}}; }

KeptImage encoded(const std::string& text) { return {{}, {text.begin(), text.end()}}; }

const auto middle = [](int width, int height) { return image::Box{2, 3, width - 4, height - 5}; };

class KeptImagesTest : public testing::Test {
 protected:
  std::unique_ptr<KeptImages> in_directory() const {
    return kept_in_directory(4, {.directory = directory_.file("cache"), .identity = "these"});
  }
  std::optional<FoundImage> find(KeptImages& kept, int64_t index) {
    return kept.find(index, middle, &scratch_, std::as_writable_bytes(std::span(&label_, 1)));
  }
  static void keep(KeptImages& kept, int64_t index, const KeptImage& image, int32_t label) {
    kept.keep(index, image, std::as_bytes(std::span(&label, 1)));
  }
  static void expect_rows(const FoundImage& found, const KeptImage& image, int begin, int end) {
    ASSERT_TRUE(found.is_decoded());
    EXPECT_EQ(found.pixels.width, kWidth);
    EXPECT_EQ(found.pixels.height, kHeight);
    EXPECT_LE(found.pixels.first_row, begin);
    EXPECT_GE(found.pixels.first_row + found.pixels.rows, end);
    const size_t bytes = static_cast<size_t>(end - begin) * image.pixels.stride();
    EXPECT_EQ(std::memcmp(found.pixels.row(begin), image.pixels.view().row(begin), bytes), 0);
  }

  TemporaryDirectory directory_;
  std::vector<uint8_t> scratch_;
  int32_t label_ = 0;
};

TEST_F(KeptImagesTest, GiveBackWhatTheyTook) {
  for (const bool memory : {true, false}) {
    const auto kept = memory ? kept_in_memory(4, 1 << 20) : in_directory();
    const KeptImage image = pixels(1), bytes = encoded("some bytes");
    EXPECT_FALSE(find(*kept, 0));
    keep(*kept, 0, image, 70);
    keep(*kept, 2, bytes, 72);
    keep(*kept, 0, pixels(2), 99);  // it is there already
    auto found = find(*kept, 0);
    ASSERT_TRUE(found);
    EXPECT_EQ(label_, 70);
    expect_rows(*found, image, 3, 7);
    EXPECT_FALSE(find(*kept, 1));
    found = find(*kept, 2);
    ASSERT_TRUE(found);
    EXPECT_EQ(label_, 72);
    EXPECT_FALSE(found->is_decoded());
    EXPECT_TRUE(std::ranges::equal(found->encoded, bytes.encoded));
  }
}

TEST_F(KeptImagesTest, InMemoryStayWithinTheLimit) {
  const uint64_t bytes = pixels(1).bytes().size();
  const auto kept = kept_in_memory(4, 2 * bytes);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(kept->has_room(bytes), i < 2);
    keep(*kept, i, pixels(static_cast<uint64_t>(i)), 0);
  }
  EXPECT_TRUE(find(*kept, 1));
  EXPECT_FALSE(find(*kept, 2));
  EXPECT_TRUE(kept->has_room(0));
}

// Of one budget for all, whatever else has a part of it.
TEST_F(KeptImagesTest, InMemoryLeaveAQuarterOfTheBudget) {
  const auto budget = std::make_shared<MemoryBudget>(10 << 20, "of this test", "an_option");
  MemoryBudget::Share batches(budget, MemoryBudget::Share::Of::kBatches);
  batches.resize(1 << 20);
  const KeptImage image = encoded(std::string(1 << 20, 'x'));
  const auto keep_all = [&](KeptImages& kept) {
    int there = 0;
    for (int64_t i = 0; i < 10; ++i) {
      if (kept.has_room(image.bytes().size())) keep(kept, i, image, 0);
      there += find(kept, i).has_value();
    }
    return there;
  };
  {
    const auto training = kept_in_memory(10, 3 << 20, budget),
               evaluation = kept_in_memory(10, 1 << 30, budget);
    EXPECT_EQ(keep_all(*training), 3) << "what its own limit has room for";
    testing::internal::CaptureStderr();
    EXPECT_EQ(keep_all(*evaluation), 2);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::AllOf(testing::HasSubstr("the cache of images in memory is full"),
                               testing::ContainsRegex("has [0-9]+ bytes"),
                               testing::HasSubstr("is 10485760 bytes (of this test), of which a quarter"),
                               testing::HasSubstr("an_option raises it"),
                               testing::HasSubstr("It keeps 2 of 10 images")));
    EXPECT_GE(budget->room_for_batches(0), budget->bytes() / 4);
    EXPECT_LT(budget->room_for_batches(0), size_t{3} << 20);
  }
  EXPECT_EQ(budget->room_for_batches(0), size_t{9} << 20) << "given back with the images";
}

// Whatever the limit says, memory that the system refuses ends the cache, not the run.
TEST_F(KeptImagesTest, InMemoryStayWithinWhatTheSystemGives) {
  if (kReservesAddressSpace)
    GTEST_SKIP() << "needs a build without sanitizers, which want more address space than a limit leaves";
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // other tests of the process leave threads
  const KeptImage image = encoded(std::string(40 << 20, 'x'));
  EXPECT_EXIT(
      {
        size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit room{};
        room.rlim_cur = room.rlim_max = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + (200 << 20);
        ::setrlimit(RLIMIT_AS, &room);
        const auto kept = kept_in_memory(100, uint64_t{1} << 40);
        int64_t there = 0;
        for (int64_t i = 0; i < 100; ++i) {
          keep(*kept, i, image, 0);
          there += find(*kept, i).has_value();
        }
        std::exit(there > 0 && there < 100 && !kept->has_room(1) && find(*kept, 0) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// The first read has to see all of the image; later ones need not.
TEST_F(KeptImagesTest, InADirectoryAreReadWholeOnceAndThenInPart) {
  const KeptImage image = pixels(5);
  keep(*in_directory(), 1, image, 8);
  const auto kept = in_directory();
  auto found = find(*kept, 1);
  ASSERT_TRUE(found);
  expect_rows(*found, image, 0, kHeight);
  found = find(*kept, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(label_, 8);
  EXPECT_EQ(found->pixels.first_row, 3);
  EXPECT_EQ(found->pixels.rows, kHeight - 5);
  expect_rows(*found, image, 3, 7);
}

// Damage anywhere in an image, also in rows that nobody needs.
TEST_F(KeptImagesTest, DamageIsFoundAtTheFirstRead) {
  const std::string file = directory_.file("cache/copy-1/images.bin");
  keep(*in_directory(), 1, pixels(5), 8);
  const std::string good = read_file(file);
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file_atomically(file, damaged);
    const auto kept = in_directory();
    EXPECT_FALSE(find(*kept, 1)) << at;
    keep(*kept, 1, pixels(5), 8);
    EXPECT_TRUE(find(*kept, 1)) << at;
    std::filesystem::remove(directory_.file("cache/copy-1/manifest.txt"));
    keep(*in_directory(), 1, pixels(5), 8);
  }
}

}  // namespace
}  // namespace mox::data::internal
