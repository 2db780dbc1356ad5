#include "moxing/image/augmentation.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "runtime/base/error.h"
#include "tests/moxing/image/images.h"
#include "tests/support/temporary_directory.h"

namespace mox::image {
namespace {

using testing::HasSubstr;

std::vector<float> read(const Augmentation& recipe, const std::string& encoded, SampleContext context = {}) {
  ImageReader reader(recipe);
  std::vector<float> out(static_cast<size_t>(recipe.channels * recipe.height * recipe.width), -1e9f);
  reader.read(as_bytes(encoded), "x", context, out.data());
  return out;
}

// Colours that tell where a pixel came from.
Bitmap coordinates(int width, int height) {
  Bitmap bitmap(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      bitmap.row(y)[x * kPixelBytes] = static_cast<uint8_t>(x + 1);
      bitmap.row(y)[x * kPixelBytes + 1] = static_cast<uint8_t>(y + 1);
      bitmap.row(y)[x * kPixelBytes + 2] = 77;
    }
  return bitmap;
}

constexpr std::array<float, 3> kMean{0.5f, 0.25f, 0.125f}, kStddev{0.5f, 0.25f, 2};

TEST(ImageReader, NormalisesIntoPlanes) {
  const Bitmap bitmap = picture(30, 20);
  const auto out = read({.height = 20, .width = 30, .mean = kMean, .stddev = kStddev}, encode_png(bitmap));
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 20; ++y)
      for (int x = 0; x < 30; ++x) {
        const auto channel = static_cast<size_t>(c);
        const float expected =
            (static_cast<float>(bitmap.row(y)[x * kPixelBytes + c]) / 255 - kMean[channel]) /
            kStddev[channel];
        ASSERT_NEAR(out[(c * 20 + y) * 30 + x], expected, 1e-6);
      }
}

TEST(ImageReader, MakesGrey) {
  Bitmap bitmap(8, 8);
  for (size_t i = 0; i < bitmap.pixels.size(); i += 4) {
    bitmap.pixels[i] = 100;
    bitmap.pixels[i + 1] = 200;
    bitmap.pixels[i + 2] = 50;
  }
  const auto out = read({.height = 8, .width = 8, .channels = 1}, encode_png(bitmap));
  EXPECT_EQ(out.size(), 64u);
  EXPECT_NEAR(out[9] * 255, std::round(0.299 * 100 + 0.587 * 200 + 0.114 * 50), 1e-3);
}

// Decode, crop and resize as one step give what they give one after another.
TEST(ImageReader, RandomResizedCropIsACropThenAResize) {
  const std::string encoded = encode_jpeg(picture(200, 150));
  const Bitmap whole = decode(as_bytes(encoded), "x");
  const Augmentation recipe{.height = 24, .width = 32, .crop = Crop::kRandomResized, .flip = true};
  std::set<float> firsts;
  for (uint64_t sample = 0; sample < 50; ++sample) {
    const SampleContext context{1, 2, sample};
    const auto out = read(recipe, encoded, context);
    ImageReader reader(recipe);
    std::vector<float> from_pixels(out.size());
    reader.read(planar(whole).view(), context, from_pixels.data());
    EXPECT_EQ(out, from_pixels) << sample;
    EXPECT_EQ(out, read(recipe, encoded, context));
    firsts.insert(out[0]);
  }
  EXPECT_GT(firsts.size(), 30u);
}

TEST(ImageReader, CutsTheCentre) {
  const auto out =
      read({.height = 10, .width = 20, .crop = Crop::kCentre, .resize_shorter = 60, .resize_shorter_max = 60},
           encode_png(coordinates(100, 60)));
  EXPECT_NEAR(out[0] * 255, 41, 1e-3);
  EXPECT_NEAR(out[19] * 255, 60, 1e-3);
  EXPECT_NEAR(out[200] * 255, 26, 1e-3);
}

TEST(ImageReader, PadsAndCrops) {
  const std::string encoded = encode_png(coordinates(12, 12));
  const Augmentation recipe{.height = 12, .width = 12, .crop = Crop::kPadded, .padding = 3, .flip = true};
  std::set<std::string> seen;
  for (uint64_t sample = 0; sample < 400; ++sample) {
    const auto out = read(recipe, encoded, {5, 0, sample});
    // The window's place and direction follow from any pixel inside, here the middle.
    const auto red = [&](int x, int y) { return std::lround(out[y * 12 + x] * 255); };
    const auto green = [&](int x, int y) { return std::lround(out[144 + y * 12 + x] * 255); };
    const bool flipped = red(6, 6) < red(5, 6);
    const long dx = red(6, 6) - 1 - (flipped ? 5 : 6), dy = green(6, 6) - 1 - 6;
    seen.insert(std::to_string(dx) + "," + std::to_string(dy) + (flipped ? "f" : ""));
    for (int y = 0; y < 12; ++y)
      for (int x = 0; x < 12; ++x) {
        const long from_x = (flipped ? 11 - x : x) + dx, from_y = y + dy;
        const bool inside = from_x >= 0 && from_x < 12 && from_y >= 0 && from_y < 12;
        ASSERT_EQ(red(x, y), inside ? from_x + 1 : 0) << sample << " " << x << " " << y;
        ASSERT_EQ(green(x, y), inside ? from_y + 1 : 0) << sample << " " << x << " " << y;
      }
  }
  EXPECT_GT(seen.size(), 90u);  // of 7 x 7 x 2
}

TEST(ImageReader, CutsOutASquare) {
  Bitmap white(16, 16);
  std::fill(white.pixels.begin(), white.pixels.end(), uint8_t{255});
  const Augmentation recipe{.height = 16, .width = 16, .cut_out = 6};
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const auto out = read(recipe, encode_png(white), {5, 0, sample});
    const auto zeros = std::count(out.begin(), out.begin() + 256, 0.0f);
    EXPECT_GE(zeros, 9);
    EXPECT_LE(zeros, 36);
    EXPECT_EQ(std::count(out.begin(), out.end(), 0.0f), 3 * zeros);
    EXPECT_EQ(std::count(out.begin(), out.end(), 1.0f), 3 * (256 - zeros));
  }
}

TEST(ImageReader, JittersColoursWithinBounds) {
  const std::string encoded = encode_png(picture(16, 16));
  const Augmentation recipe{
      .height = 16,
      .width = 16,
      .jitter = {.brightness = 0.4f, .contrast = 0.4f, .saturation = 0.4f, .hue = 0.1f}};
  const auto plain = read({.height = 16, .width = 16}, encoded);
  const auto first = read(recipe, encoded, {1, 0, 0});
  EXPECT_NE(first, plain);
  EXPECT_NE(first, read(recipe, encoded, {1, 0, 1}));
  EXPECT_NE(first, read(recipe, encoded, {1, 1, 0}));
  EXPECT_EQ(first, read(recipe, encoded, {1, 0, 0}));
  for (float value : first) {
    ASSERT_GE(value, 0);
    ASSERT_LE(value, 1);
  }
}

TEST(ImageReader, HueAloneKeepsLightestAndDarkest) {
  const std::string encoded = encode_png(picture(16, 16));
  const auto plain = read({.height = 16, .width = 16}, encoded);
  const auto turned = read({.height = 16, .width = 16, .jitter = {.hue = 0.5f}}, encoded, {1, 0, 3});
  EXPECT_NE(plain, turned);
  for (size_t i = 0; i < 256; ++i) {
    ASSERT_NEAR(std::max({plain[i], plain[i + 256], plain[i + 512]}),
                std::max({turned[i], turned[i + 256], turned[i + 512]}), 1e-5);
    ASSERT_NEAR(std::min({plain[i], plain[i + 256], plain[i + 512]}),
                std::min({turned[i], turned[i + 256], turned[i + 512]}), 1e-5);
  }
}

TEST(ImageReader, FastDecodeStaysClose) {
  Bitmap smooth(400, 300);
  for (int y = 0; y < 300; ++y)
    for (int x = 0; x < 400; ++x)
      for (int c = 0; c < 3; ++c)
        smooth.row(y)[x * kPixelBytes + c] =
            static_cast<uint8_t>(120 + 100 * std::sin(0.03 * x * (c + 1) + 0.02 * y));
  const std::string encoded = encode_jpeg(smooth);
  Augmentation recipe{.height = 32, .width = 32, .crop = Crop::kRandomResized, .min_area = 0.3, .flip = true};
  for (uint64_t sample = 0; sample < 20; ++sample) {
    recipe.fast_decode = false;
    const auto exact = read(recipe, encoded, {1, 0, sample});
    recipe.fast_decode = true;
    const auto fast = read(recipe, encoded, {1, 0, sample});
    double sum = 0;
    for (size_t i = 0; i < exact.size(); ++i) sum += std::abs(exact[i] - fast[i]);
    EXPECT_LT(sum / static_cast<double>(exact.size()) * 255, 3);
    EXPECT_NE(exact, fast);
  }
}

TEST(Augmentation, RefusesWhatCannotBe) {
  const auto message = [](const Augmentation& recipe) {
    try {
      ImageReader reader(recipe);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({.height = 0}), HasSubstr("height"));
  EXPECT_THAT(message({.channels = 4}), HasSubstr("channels"));
  EXPECT_THAT(message({.min_area = 0.5, .max_area = 0.2}), HasSubstr("min_area"));
  EXPECT_THAT(message({.stddev = {1, 0, 1}}), HasSubstr("stddev"));
  EXPECT_THAT(message({.channels = 1, .jitter = {.hue = 0.1f}}), HasSubstr("jitter"));
  EXPECT_THAT(message({.padding = 224}), HasSubstr("padding"));
  EXPECT_THAT(message({.min_proportion = 0}), HasSubstr("min_proportion"));
  EXPECT_EQ(message({}), "accepted");
}

// Large samples are written past the caches where their rows are aligned.
TEST(ImageReader, GivesTheSameBitsWhereverTheSampleLies) {
  const PlanarBitmap source = planar(picture(301, 277, 5));
  for (const int width : {224, 230, 7}) {
    SCOPED_TRACE(width);
    const Augmentation recipe{.height = 400,
                              .width = width,
                              .crop = Crop::kRandomResized,
                              .flip = true,
                              .mean = {0.5f, 0.4f, 0.3f},
                              .stddev = {0.2f, 0.3f, 0.4f}};
    const size_t values = 3 * 400 * static_cast<size_t>(width);
    std::vector<float> memory(values + 32, -7.0f);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    float* const aligned = memory.data() + (64 - address % 64) % 64 / sizeof(float);
    ImageReader reader(recipe);
    const SampleContext context{.seed = 3, .epoch = 1, .sample = 9};
    reader.read(source.view(), context, aligned);
    const std::vector<float> expected(aligned, aligned + values);
    reader.read(source.view(), context, aligned + 1);
    EXPECT_EQ(std::memcmp(aligned + 1, expected.data(), values * sizeof(float)), 0);
    EXPECT_EQ(aligned[values + 1], -7.0f);
  }
}

}  // namespace
}  // namespace mox::image
