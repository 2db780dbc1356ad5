// The arithmetic of windows, against windows that are laid down one by one.
#include "ops/convolution/geometry/window.h"

#include <gtest/gtest.h>

#include "ops/convolution/geometry/convolution_geometry.h"

namespace mox::test {
namespace {

// How many windows fit into `pixels` with their padding.
int64_t windows_laid_down(int64_t pixels, int64_t extent, int64_t stride) {
  int64_t count = 0;
  for (int64_t first = 0; first + extent <= pixels; first += stride) ++count;
  return count;
}

struct Extents {
  int64_t input, size, stride, dilation;
};
template <typename Check>
void for_each_window(Check check) {
  for (int64_t input = 1; input <= 12; ++input)
    for (int64_t size = 1; size <= 5; ++size)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t dilation = 1; dilation <= 3; ++dilation) {
          SCOPED_TRACE(testing::Message()
                       << input << " pixels, " << size << " by " << stride << ", dilated " << dilation);
          check(Extents{input, size, stride, dilation});
        }
}

WindowGeometry resolved(const Extents& e, const Padding& padding) {
  return resolve_window(window_attributes({e.stride, 1}, {e.dilation, 1}, padding), {e.input, 7},
                        {e.size, 1});
}

TEST(Window, OfGivenPaddingIsLaidDownAsOftenAsItFits) {
  for_each_window([](const Extents& e) {
    const int64_t extent = (e.size - 1) * e.dilation + 1;
    for (const auto& [padding, before, after] : {std::tuple{Padding::kValid, 0, 0},
                                                 {Padding::of(2, 1, 0, 0), 2, 1},
                                                 {Padding::of(0, 3, 0, 0), 0, 3}}) {
      if (extent > e.input + before + after) continue;
      const auto [rows, columns] = resolved(e, padding);
      EXPECT_EQ(rows.output, windows_laid_down(e.input + before + after, extent, e.stride));
      EXPECT_EQ(rows.before, before);
      EXPECT_EQ(rows.after, after);
      EXPECT_EQ(columns, (WindowAxis{.input = 7, .output = 7}));
    }
  });
}

// TensorFlow's rule: a window for every `stride` pixels, the padding that they need and no more,
// an odd one behind.
TEST(Window, OfSamePaddingHasOneForEveryStride) {
  for_each_window([](const Extents& e) {
    const int64_t extent = (e.size - 1) * e.dilation + 1;
    const WindowAxis rows = resolved(e, Padding::kSame)[0];
    EXPECT_EQ(rows.output, windows_laid_down(e.input, 1, e.stride));
    EXPECT_TRUE(rows.after == rows.before || rows.after == rows.before + 1);
    const int64_t padding = rows.before + rows.after;
    EXPECT_GE(windows_laid_down(e.input + padding, extent, e.stride), rows.output);
    if (padding > 0) {
      EXPECT_LT(windows_laid_down(e.input + padding - 1, extent, e.stride), rows.output);
    }
  });
}

TEST(Window, PaddingIsReadAsItWasWritten) {
  for (const Padding& padding : {Padding::kSame, Padding::kValid, Padding::of(1, 2, 3, 4)}) {
    const Padding read = padding_of(window_attributes({1, 1}, {1, 1}, padding));
    EXPECT_EQ(read.name(), padding.name());
    EXPECT_EQ(read.sizes(), padding.sizes());
  }
}

TEST(EvenChunk, CoversAllInAsFewAndAsEvenPartsAsCanBe) {
  for (int64_t tiles = 1; tiles <= 100; ++tiles)
    for (const int64_t most : {1, 7, 12, 64})
      for (const int64_t step : {1, 4, 6}) {
        SCOPED_TRACE(testing::Message() << tiles << " tiles, at most " << most << ", by " << step);
        const int64_t chunk = even_chunk(tiles, most, step), parts = (tiles + most - 1) / most;
        EXPECT_EQ(chunk % step, 0);
        EXPECT_GE(chunk * parts, tiles);                       // no more parts than needed
        EXPECT_LT(chunk, (tiles + parts - 1) / parts + step);  // none larger than its even share
      }
}

TEST(ChannelBlocked, HasABlockOfChannelsForEachPixel) {
  const TensorType image{DType::kFloat32, {2, 32, 3, 5}};
  const Layout layout = channel_blocked(image, 16);
  EXPECT_EQ(layout.strides(), (std::vector<int64_t>{2 * 15 * 16, 15 * 16, 5 * 16, 16}));
  EXPECT_EQ(layout.blocks(), (std::vector<Layout::Block>{{1, 16}}));
  EXPECT_EQ(layout.bytes(), 2 * 32 * 15 * sizeof(float));
  EXPECT_FALSE(layout.is_padded());
}

TEST(ConvolutionGeometry, CountsAMultiplicationAndAnAdditionForEachProduct) {
  const ConvolutionGeometry geometry{.x = {DType::kFloat32, {2, 8, 5, 5}},
                                     .w = {DType::kFloat32, {16, 4, 3, 3}},
                                     .y = {DType::kFloat32, {2, 16, 3, 3}},
                                     .groups = 2,
                                     .window = {}};
  EXPECT_EQ(geometry.floating_point_operations(), 2.0 * (2 * 16 * 3 * 3) * (4 * 3 * 3));
}

}  // namespace
}  // namespace mox::test
