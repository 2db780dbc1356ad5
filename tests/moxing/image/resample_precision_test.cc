// The resampler beside the definition in resample.h, computed plainly in double precision, and beside itself:
// every kind of vectors, input and output gives the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "moxing/image/resample.h"
#include "ops/processor/processor.h"
#include "runtime/tensor/round_to_bfloat16.h"
#include "tests/moxing/image/images.h"

namespace mox::image {
namespace {

// Bytes without any order: neighbours differ by as much as they can.
Bitmap noise(int width, int height, uint64_t seed) {
  Bitmap bitmap(width, height);
  for (size_t i = 0; i < bitmap.pixels.size(); ++i)
    bitmap.pixels[i] = static_cast<uint8_t>(mix_hash(seed, i) >> 13);
  return bitmap;
}

struct Weights {
  int first = 0;
  std::vector<double> values;
};

// Of output pixel i of `resized`, made from `size` pixels after `begin`.
Weights exact_weights(Filter filter, double begin, double size, int resized, int i) {
  const double scale = size / resized, grown = std::max(1.0, scale), centre = begin + (i + 0.5) * scale;
  Weights weights;
  double sum = 0;
  for (int j = static_cast<int>(std::floor(begin)); j < static_cast<int>(std::ceil(begin + size)); ++j) {
    const double t = (j + 0.5 - centre) / grown;
    const double value = filter == Filter::kBilinear ? std::max(0.0, 1 - std::abs(t))
                                                     : static_cast<double>(t > -0.5 && t <= 0.5);
    if (value <= 0 && weights.values.empty()) continue;
    if (value <= 0) break;
    if (weights.values.empty()) weights.first = j;
    weights.values.push_back(value);
    sum += value;
  }
  for (double& value : weights.values) value /= sum;
  return weights;
}

void expect_exact(const Bitmap& source, const Resampling& wanted, const Bitmap& result) {
  const Box& output = wanted.output;
  std::vector<Weights> columns;
  for (int x = 0; x < output.width; ++x)
    columns.push_back(exact_weights(wanted.filter, wanted.source.x, wanted.source.width, wanted.resized_width,
                                    output.x + (wanted.flip ? output.width - 1 - x : x)));
  std::vector<double> combined(source.stride());
  for (int y = 0; y < output.height; ++y) {
    const Weights rows = exact_weights(wanted.filter, wanted.source.y, wanted.source.height,
                                       wanted.resized_height, output.y + y);
    std::fill(combined.begin(), combined.end(), 0.0);
    for (size_t k = 0; k < rows.values.size(); ++k)
      for (size_t i = 0; i < combined.size(); ++i)
        combined[i] += rows.values[k] * source.row(rows.first + static_cast<int>(k))[i];
    for (int x = 0; x < output.width; ++x) {
      const Weights& own = columns[x];
      const auto h = static_cast<double>(own.values.size()), v = static_cast<double>(rows.values.size());
      const double bound = 0.5 + std::ldexp(1, -7) + std::min(v, 16.0) * std::ldexp(1, -9) +
                           255 * (h + v - 2) * std::ldexp(1, -15) + 1e-6;
      for (int c = 0; c < kPlanes; ++c) {
        double exact = 0;
        for (size_t k = 0; k < own.values.size(); ++k)
          exact += own.values[k] *
                   combined[(static_cast<size_t>(own.first) + k) * kPixelBytes + static_cast<size_t>(c)];
        ASSERT_NEAR(result.row(y)[x * kPixelBytes + c], exact, bound) << x << " " << y << " " << c;
      }
    }
  }
}

void expect_same(const Bitmap& a, const Bitmap& b) {
  for (int y = 0; y < a.height; ++y)
    for (int x = 0; x < a.width; ++x) ASSERT_EQ(colour(a, x, y), colour(b, x, y)) << x << " " << y;
}

// The whole of an image of width x height.
Resampling whole(int width, int height, int resized_width, int resized_height,
                 Filter filter = Filter::kBilinear) {
  return {.source = Region::of({0, 0, width, height}),
          .resized_width = resized_width,
          .resized_height = resized_height,
          .output = {0, 0, resized_width, resized_height},
          .flip = false,
          .filter = filter};
}

struct Sizes {
  int width, height, resized_width, resized_height;
};

// Scales of all ways in which the kernels load columns: 16 outputs within 32 columns, within 64, and beyond;
// one step, two and more.
constexpr Sizes kSizes[] = {
    {1, 1, 1, 1},      {1, 1, 9, 7},       {1, 40, 5, 3},      {40, 1, 3, 5},     {2, 3, 3, 2},
    {3000, 3, 3, 3},   {3, 3000, 3, 3},    {2000, 5, 1, 1},    {17, 13, 224, 31}, {31, 200, 224, 20},
    {200, 31, 97, 62}, {300, 20, 100, 20}, {311, 20, 101, 11}, {800, 10, 100, 7}, {65, 64, 33, 32},
    {64, 65, 32, 33},  {448, 20, 224, 10}, {449, 21, 223, 9},  {97, 97, 97, 97},  {130, 40, 63, 41},
};

TEST(ResamplePrecision, IsAsCloseToTheExactResultAsItSays) {
  uint64_t seed = 0;
  for (const Sizes& sizes : kSizes)
    for (const Filter filter : {Filter::kBilinear, Filter::kArea})
      for (const Vectors vectors : {Vectors::kBest, Vectors::kAvx2}) {
        SCOPED_TRACE(testing::Message() << sizes.width << " x " << sizes.height << " to "
                                        << sizes.resized_width << " x " << sizes.resized_height);
        const Bitmap source = noise(sizes.width, sizes.height, ++seed);
        Resampling wanted =
            whole(sizes.width, sizes.height, sizes.resized_width, sizes.resized_height, filter);
        wanted.flip = seed % 2 == 0;
        expect_exact(source, wanted, resample(source, wanted, vectors));
      }
}

TEST(ResamplePrecision, IsCloseForRegionsWhoseBordersLieWithinPixels) {
  const RandomStream random(11, 0);
  const Bitmap source = noise(90, 70, 3);
  for (uint64_t i = 0; i < 40; ++i) {
    const auto unit = [&](uint64_t position) { return random.uniform(8 * i + position); };
    Resampling wanted;
    wanted.source.width = 1 + 89 * unit(0);
    wanted.source.height = 1 + 69 * unit(1);
    wanted.source.x = (90 - wanted.source.width) * unit(2);
    wanted.source.y = (70 - wanted.source.height) * unit(3);
    wanted.resized_width = 1 + static_cast<int>(60 * unit(4));
    wanted.resized_height = 1 + static_cast<int>(60 * unit(5));
    wanted.output = {0, 0, wanted.resized_width, wanted.resized_height};
    wanted.flip = i % 2 == 0;
    expect_exact(source, wanted, resample(source, wanted));
  }
}

// What pictures with large plain areas of both ends would show: nothing overflows, and white stays white.
TEST(ResamplePrecision, KeepsBlackAndWhite) {
  for (const Sizes& sizes : kSizes)
    for (const uint8_t value : {uint8_t{0}, uint8_t{255}}) {
      Bitmap source(sizes.width, sizes.height);
      std::fill(source.pixels.begin(), source.pixels.end(), value);
      const Bitmap result =
          resample(source, whole(sizes.width, sizes.height, sizes.resized_width, sizes.resized_height));
      for (int y = 0; y < result.height; ++y)
        for (int x = 0; x < result.width; ++x)
          ASSERT_EQ(colour(result, x, y), std::string(3, static_cast<char>(value)));
    }
}

TEST(ResamplePrecision, HasTheSameBitsOnEveryProcessor) {
  if (available_processor().lanes < 16) GTEST_SKIP() << "needs AVX-512 to compare with";
  uint64_t seed = 100;
  for (const Sizes& sizes : kSizes)
    for (const bool flip : {false, true})
      for (const Filter filter : {Filter::kBilinear, Filter::kArea}) {
        const Bitmap source = noise(sizes.width, sizes.height, ++seed);
        Resampling wanted =
            whole(sizes.width, sizes.height, sizes.resized_width, sizes.resized_height, filter);
        wanted.flip = flip;
        expect_same(resample(source, wanted, Vectors::kAvx2), resample(source, wanted, Vectors::kBest));
      }
}

// Of all widths, to memory that is aligned and to memory that is not: what `bytes` has, scaled, and nothing
// beside it.
TEST(ResamplePrecision, FloatsAreTheBytesScaled) {
  const PlanarBitmap source = planar(noise(150, 20, 7));
  for (const Vectors vectors : {Vectors::kBest, Vectors::kAvx2})
    for (int width = 1; width <= 70; ++width)
      for (const size_t shift : {size_t{0}, size_t{1}}) {
        SCOPED_TRACE(width);
        const Resampling wanted = whole(150, 20, width, 4);
        Resampler resampler(vectors);
        const size_t stride = shift == 0 ? 80 : 75, plane = 4 * stride;
        std::vector<float> memory(3 * plane + 64, -7.0f);
        const auto past = reinterpret_cast<uintptr_t>(memory.data()) % 64 / sizeof(float);
        float* const first = memory.data() + (16 - past) % 16 + shift;
        const FloatPlanes out{.planes = {first, first + plane, first + 2 * plane},
                              .stride = stride,
                              .scale = {0.5f, 0.003f, 1.0f / 3},
                              .offset = {-1, 0.1f, -30.0f},
                              .past_caches = true};
        resampler.prepare(wanted);
        resampler.add_image(source.view(), out);
        std::vector<float> expected(memory.size(), -7.0f);
        resampler.prepare(wanted);
        resampler.add_image(source.view(), [&](int y, const uint8_t* const* planes) {
          for (size_t c = 0; c < kPlanes; ++c)
            for (int x = 0; x < width; ++x)
              expected[static_cast<size_t>(out.planes[c] - memory.data()) + static_cast<size_t>(y) * stride +
                       static_cast<size_t>(x)] =
                  std::fma(static_cast<float>(planes[c][x]), out.scale[c], out.offset[c]);
        });
        ASSERT_EQ(std::memcmp(memory.data(), expected.data(), memory.size() * sizeof(float)), 0);
      }
}

// Of all widths, aligned and not, and of scales that give numbers of every kind: what floats are, rounded.
// Ties are 1.5 times odd numbers above 85.
TEST(ResamplePrecision, BFloat16sAreTheFloatsRounded) {
  const PlanarBitmap source = planar(noise(150, 20, 9));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 3> scales[] = {
      {0.5f, 1.5f, 1.0f / 3}, {0x1p-140f, 0x1p-133f, 1e37f}, {kInfinity, 3e38f, 0}};
  for (const Vectors vectors : {Vectors::kBest, Vectors::kAvx2})
    for (int width = 1; width <= 70; ++width)
      for (const size_t shift : {size_t{0}, size_t{1}})
        for (const auto& scale : scales) {
          SCOPED_TRACE(width);
          Resampler resampler(vectors);
          const size_t stride = shift == 0 ? 96 : 75, plane = 4 * stride;
          FloatPlanes floats{.stride = stride, .scale = scale, .offset = {-1, 0, -30}, .past_caches = true};
          BFloat16Planes narrow{
              .stride = stride, .scale = scale, .offset = {-1, 0, -30}, .past_caches = true};
          std::vector<float> exact(3 * plane, -7.0f);
          std::vector<BFloat16> memory(3 * plane + 64, BFloat16(-7.0f));
          const auto past = reinterpret_cast<uintptr_t>(memory.data()) % 64 / sizeof(BFloat16);
          BFloat16* const first = memory.data() + (32 - past) % 32 + shift;
          for (size_t c = 0; c < kPlanes; ++c) {
            floats.planes[c] = exact.data() + c * plane;
            narrow.planes[c] = first + c * plane;
          }
          const Resampling wanted = whole(150, 20, width, 4);
          resampler.prepare(wanted);
          resampler.add_image(source.view(), floats);
          resampler.prepare(wanted);
          resampler.add_image(source.view(), narrow);
          std::vector<BFloat16> expected(memory.size(), BFloat16(-7.0f));
          round_to_bfloat16(exact, expected.data() + (first - memory.data()));
          ASSERT_EQ(std::memcmp(memory.data(), expected.data(), memory.size() * sizeof(BFloat16)), 0);
        }
}

// Row by row, and with no more of the image in memory than the rows that are needed: pixels outside
// have no influence.
TEST(ResamplePrecision, TakesRowsAndPartsOfImages) {
  const Bitmap source = noise(83, 77, 8);
  Resampling wanted{.source = {5.5, 9.25, 61.5, 53},
                    .resized_width = 40,
                    .resized_height = 61,
                    .output = {3, 5, 30, 41},
                    .flip = true,
                    .filter = Filter::kBilinear};
  const Bitmap expected = resample(source, wanted);
  const Box needed = needed_pixels(wanted);
  Resampler resampler;
  resampler.prepare(wanted);
  EXPECT_EQ(resampler.needed(), needed);
  EXPECT_GT(needed.x, 5);
  EXPECT_GT(needed.y, 9);
  EXPECT_LT(needed.y + needed.height, 62);
  Bitmap result(30, 41);
  const auto store = [&](int y, const uint8_t* const* planes) {
    for (int x = 0; x < 30; ++x)
      for (int c = 0; c < kPlanes; ++c) result.row(y)[x * kPixelBytes + c] = planes[c][x];
  };
  for (int y = 0; y < needed.height; ++y) {
    const uint8_t* const from = source.row(needed.y + y) + static_cast<ptrdiff_t>(needed.x) * kPixelBytes;
    const std::vector<uint8_t> row(from, from + static_cast<ptrdiff_t>(needed.width) * kPixelBytes);
    resampler.add_row(y, row.data(), store);
  }
  expect_same(result, expected);

  const PlanarBitmap all = planar(source);
  std::vector<uint8_t> part(all.view().row(needed.y), all.view().row(needed.y + needed.height));
  part.resize(part.size() + kRowSlackBytes);
  for (int y = 0; y < needed.height; ++y)
    for (int c = 0; c < kPlanes; ++c)
      for (int x = 0; x < 83; ++x)
        if (x < needed.x || x >= needed.x + needed.width) part[(y * kPlanes + c) * 83 + x] ^= 0x5a;
  result = Bitmap(30, 41);
  resampler.prepare(wanted);
  resampler.add_image({83, 77, needed.y, needed.height, part.data()}, store);
  expect_same(result, expected);
}

}  // namespace
}  // namespace mox::image
