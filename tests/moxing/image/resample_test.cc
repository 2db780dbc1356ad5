#include "moxing/image/resample.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "runtime/base/error.h"
#include "tests/moxing/image/images.h"

namespace mox::image {
namespace {

Bitmap pattern(int width, int height) {
  Bitmap bitmap(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        bitmap.row(y)[x * kPixelBytes + c] = static_cast<uint8_t>(7 * x + 13 * y + 31 * c + x * y);
  return bitmap;
}

// tests/fixtures/make_resize_fixtures.py made these with Pillow.
TEST(Resample, AgreesWithPillowToOne) {
  std::ifstream file(MOX_SOURCE_DIR "/tests/fixtures/resize_fixtures.txt");
  std::string line, filter, hex;
  const Bitmap source = pattern(41, 29);
  int cases = 0;
  while (std::getline(file, line)) {
    std::istringstream text(line);
    Box box;
    int width, height;
    ASSERT_TRUE(text >> filter >> box.x >> box.y >> box.width >> box.height >> width >> height >> hex);
    SCOPED_TRACE(line.substr(0, 60));
    const Bitmap result = resample(source, {.source = Region::of(box),
                                            .resized_width = width,
                                            .resized_height = height,
                                            .output = {0, 0, width, height},
                                            .flip = false,
                                            .filter = filter == "area" ? Filter::kArea : Filter::kBilinear});
    ASSERT_EQ(hex.size(), static_cast<size_t>(width * height * 6));
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c) {
          const int expected = std::stoi(hex.substr(2 * (3 * (int64_t{y} * width + x) + c), 2), nullptr, 16);
          ASSERT_NEAR(result.row(y)[x * kPixelBytes + c], expected, 1) << x << " " << y << " " << c;
        }
    ++cases;
  }
  EXPECT_EQ(cases, 16);
}

TEST(Resample, LeavesPixelsAsTheyAreAtTheSameSize) {
  const Bitmap source = pattern(30, 20);
  const Box all{0, 0, 30, 20};
  for (Filter filter : {Filter::kBilinear, Filter::kArea}) {
    const Bitmap result = resample(source, {.source = Region::of(all),
                                            .resized_width = 30,
                                            .resized_height = 20,
                                            .output = all,
                                            .flip = false,
                                            .filter = filter});
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 30; ++x) ASSERT_EQ(colour(result, x, y), colour(source, x, y));
  }
}

TEST(Resample, GivesAPartAsInTheWholeAndItsMirrorImage) {
  const Bitmap source = picture(301, 187);
  const Resampling whole{.source = {3, 5, 280, 170},
                         .resized_width = 97,
                         .resized_height = 61,
                         .output = {0, 0, 97, 61},
                         .flip = false,
                         .filter = Filter::kBilinear};
  const Bitmap expected = resample(source, whole);
  for (const Box& box : {Box{0, 0, 1, 1}, Box{96, 60, 1, 1}, Box{11, 7, 50, 33}, Box{40, 0, 57, 61}})
    for (bool flip : {false, true}) {
      Resampling part = whole;
      part.output = box;
      part.flip = flip;
      const Bitmap result = resample(source, part);
      for (int y = 0; y < box.height; ++y)
        for (int x = 0; x < box.width; ++x)
          ASSERT_EQ(colour(result, flip ? box.width - 1 - x : x, y), colour(expected, box.x + x, box.y + y));
    }
}

// A ramp says where a pixel comes from: value v is the place of the pixel's centre less a half.
TEST(Resample, TakesRegionsWhoseBordersLieWithinPixels) {
  Bitmap ramp(200, 200);
  for (int y = 0; y < 200; ++y)
    for (int x = 0; x < 200; ++x) {
      ramp.row(y)[x * kPixelBytes] = static_cast<uint8_t>(x);
      ramp.row(y)[x * kPixelBytes + 1] = static_cast<uint8_t>(y);
    }
  const Region source{10.25, 20.75, 80.5, 121.25};
  const Bitmap result = resample(ramp, {.source = source,
                                        .resized_width = 23,
                                        .resized_height = 30,
                                        .output = {0, 0, 23, 30},
                                        .flip = false,
                                        .filter = Filter::kBilinear});
  for (int y = 1; y < 29; ++y)
    for (int x = 1; x < 22; ++x) {
      EXPECT_NEAR(result.row(y)[x * kPixelBytes], source.x + (x + 0.5) * source.width / 23 - 0.5, 0.6);
      EXPECT_NEAR(result.row(y)[x * kPixelBytes + 1], source.y + (y + 0.5) * source.height / 30 - 0.5, 0.6);
    }
}

// Reductions so strong that each weight is near the resolution of 14 bits.
TEST(Resample, KeepsTheMeanOfALargeImage) {
  Bitmap source(6000, 3);
  int64_t sum = 0;
  for (int x = 0; x < source.width; ++x) {
    const auto value = static_cast<uint8_t>(mix_hash(7, static_cast<uint64_t>(x)) % 200);
    sum += value;
    for (int y = 0; y < 3; ++y)
      for (int c = 0; c < 3; ++c) source.row(y)[x * kPixelBytes + c] = value;
  }
  const Bitmap result = resample(source, {.source = {0, 0, 6000, 3},
                                          .resized_width = 1,
                                          .resized_height = 1,
                                          .output = {0, 0, 1, 1},
                                          .flip = false,
                                          .filter = Filter::kArea});
  EXPECT_NEAR(result.pixels[0], static_cast<double>(sum) / 6000, 1.5);
}

TEST(Resample, RefusesWhatCannotBe) {
  const Bitmap source = pattern(10, 10);
  Resampling good{.source = {0, 0, 10, 10},
                  .resized_width = 5,
                  .resized_height = 5,
                  .output = {0, 0, 5, 5},
                  .flip = false,
                  .filter = Filter::kBilinear};
  EXPECT_NO_THROW(resample(source, good));
  Resampling outside = good;
  outside.output.x = 1;
  EXPECT_THROW(resample(source, outside), InvalidArgument);
  Resampling empty = good;
  empty.source.height = 0;
  EXPECT_THROW(resample(source, empty), InvalidArgument);
  Resampling beyond = good;
  beyond.source.x = 1;
  EXPECT_THROW(resample(source, beyond), InvalidArgument);
}

}  // namespace
}  // namespace mox::image
