// Winograd's minimal filtering for windows of 3 x 3 and strides of 2, on vectors of channels
// (ops/processor/lanes.h).
//
// In a line, outputs y_k = x_2k w_0 + x_2k+1 w_1 + x_2k+2 w_2 are the sum of a correlation of the even pixels
// with the two taps w_0, w_2, which minimal filtering does with 5 products for 4 outputs, and one of the odd
// pixels with the tap w_1: 4 products, and nothing to transform. So 9 points make 4 outputs of 9 pixels where
// the plain sum needs 12 products, and a tile 81 instead of 144. The points of the odd pixels share their
// filter: of 81 points only 36 have one of their own. The gradient of the image reads 5 pixels of dy and
// makes 8 (4 of each kind) from the same points and filters turned around; that of the filter reads 9 pixels
// of x and 4 of dy, and points that share a filter share a sum. Points of a line: 0, 1, -1, 2, infinity (as
// in transforms.h), then the 4 odd pixels.
#pragma once

#include "ops/convolution/winograd/lanes/stages.h"

namespace mox::winograd {
inline namespace MOX_LANES {

inline constexpr int kStridedPoints = 9, kStridedFilters = 6, kStridedOutputs = 4;  // of a line

// Which of a line's filters a point is multiplied by.
constexpr int strided_filter(int point) { return point < 5 ? point : 5; }

// B^T of 5 values.
inline void transform_five(const Vector (&d)[5], Vector* result) {
  const Vector two = splat(2), near = d[3] - d[1];
  result[0] = multiply_add(two, d[0] - d[2], near);
  result[1] = near - (d[1] + d[2]);
  result[2] = multiply_add(splat(3), d[1] - d[2], near);
  result[3] = near;
  result[4] = subtract_product(two, near, d[4] - d[2]);
}

// G of 2 values, and of 4.
inline void expand_two(Vector g0, Vector g1, Vector* result) {
  const Vector half = splat(0.5f), sixth = splat(1.0f / 6);
  result[0] = half * g0;
  result[1] = -half * (g0 + g1);
  result[2] = sixth * (g1 - g0);
  result[3] = sixth * multiply_add(splat(2), g1, g0);
  result[4] = g1;
}
inline void expand_four(const Vector (&g)[4], Vector* result) {
  const Vector even = g[0] + g[2], odd = g[1] + g[3];
  result[0] = splat(0.5f) * g[0];
  result[1] = splat(-0.5f) * (even + odd);
  result[2] = splat(1.0f / 6) * (odd - even);
  const Vector far = multiply_add(splat(8), g[3], multiply_add(splat(4), g[2], g[0]));
  result[3] = splat(1.0f / 6) * multiply_add(splat(2), g[1], far);
  result[4] = g[3];
}

// A^T: 4 results of 5 products, and 2.
inline void contract_to_four(const Vector* m, Vector* result) {
  const Vector sum = m[1] + m[2], difference = m[1] - m[2];
  result[0] = (m[0] + m[3]) + sum;
  result[1] = multiply_add(splat(2), m[3], difference);
  result[2] = multiply_add(splat(4), m[3], sum);
  result[3] = multiply_add(splat(8), m[3], difference) + m[4];
}
inline void contract_to_two(const Vector* m, Vector* result) {
  result[0] = (m[0] + m[3]) + (m[1] + m[2]);
  result[1] = multiply_add(splat(2), m[3], m[1] - m[2]) + m[4];
}

// Pixels of the image to the points of a line.
inline void strided_image_line(const Vector* d, Vector* result) {
  const Vector even[5] = {d[0], d[2], d[4], d[6], d[8]};
  transform_five(even, result);
  for (int k = 0; k < 4; ++k) result[5 + k] = d[2 * k + 1];
}

// Pixels of dy to the points of a line, for the gradient of the image. The pixels of x with an output of
// their own are the first of each pair if there is a pixel of padding before the image, and the second if
// there is none.
template <int Before>
inline void strided_output_line(const Vector* d, Vector* result) {
  const Vector all[5] = {d[0], d[1], d[2], d[3], d[4]};
  transform_five(all, result);
  for (int k = 0; k < 4; ++k) result[5 + k] = d[k + 1 - Before];
}

// Pixels of dy to the points of a line, for the gradient of the filter.
inline void strided_gradient_line(const Vector* d, Vector* result) {
  const Vector all[4] = {d[0], d[1], d[2], d[3]};
  expand_four(all, result);
  for (int k = 0; k < 4; ++k) result[5 + k] = d[k];
}

// load and spread of transform_tiles: `Line` makes the 9 points of a line of `Pixels`, of which a tile takes
// a square every `Distance` pixels, the first `before` of them in front of the image.
template <int Pixels, int Distance, void (*Line)(const Vector*, Vector*)>
struct StridedTiles {
  static constexpr int kValues = kStridedPoints * Pixels;
  static constexpr bool kStaysInRegisters = false;
  const Problem& p;
  const float* image;
  int64_t channels, height, width;
  int64_t before_y, before_x;

  void load(const TilePosition& at, int64_t b, Vector* d) const {
    const int64_t blocks = channels / kLanes, pixels = height * width;
    const float* block = image + (at.image * blocks + b) * pixels * kLanes;
    const int64_t top = at.row * Distance - before_y, left = at.column * Distance - before_x;
    for_each_column<Pixels>(block, height, width, top, left, [&](int j, const Vector* line) {
      Vector points[kStridedPoints];
      Line(line, points);
#pragma GCC unroll 16
      for (int i = 0; i < kStridedPoints; ++i) d[i * Pixels + j] = points[i];
    });
    fetch_pixels<Pixels, Distance>(block, width, top, left + Pixels);
  }
  PixelsAhead<float> ahead(int64_t first, int64_t last) const {
    return {p, {image, channels, height, width}, {Pixels, Distance, before_y}, first, last};
  }
  template <typename Store>
  static void spread(const Vector* d, const Store& store) {
    for (int i = 0; i < kStridedPoints; ++i) {
      Vector points[kStridedPoints];
      Line(d + i * Pixels, points);
#pragma GCC unroll 16
      for (int j = 0; j < kStridedPoints; ++j) store(points[j]);
    }
  }
};

using StridedImageTiles = StridedTiles<9, 8, strided_image_line>;
template <int Before>
using StridedOutputTiles = StridedTiles<5, 4, strided_output_line<Before>>;
using StridedGradientTiles = StridedTiles<4, 4, strided_gradient_line>;

// The 6 x 6 filters of a window.
struct StridedExpansion {
  static constexpr int kSide = 3;

  static void expand_line(Vector g0, Vector g1, Vector g2, Vector* result) {
    expand_two(g0, g2, result);
    result[5] = g1;
  }
  template <typename Store>
  static void apply(const Vector* g, const Store& store) {
    Vector columns[kStridedFilters * 3];
    for (int j = 0; j < 3; ++j) {
      Vector points[kStridedFilters];
      expand_line(g[j], g[3 + j], g[6 + j], points);
      for (int i = 0; i < kStridedFilters; ++i) columns[i * 3 + j] = points[i];
    }
    for (int i = 0; i < kStridedFilters; ++i) {
      Vector points[kStridedFilters];
      expand_line(columns[i * 3], columns[i * 3 + 1], columns[i * 3 + 2], points);
      for (const Vector& point : points) store(point);
    }
  }
};

// Products to results, line by line: `Line` makes the `Side` results of `Points` products.
template <int Points, int Side, void (*Line)(const Vector*, Vector*)>
struct StridedContraction {
  static constexpr int kSide = Side, kPoints = Points * Points;

  static void apply(const float* products, int64_t stride, Vector* result) {
    Vector rows[Side * Points];
    for (int j = 0; j < Points; ++j) {
      Vector column[Points], results[Side];
#pragma GCC unroll 16
      for (int i = 0; i < Points; ++i) column[i] = load(products + (i * Points + j) * stride);
      Line(column, results);
#pragma GCC unroll 16
      for (int i = 0; i < Side; ++i) rows[i * Points + j] = results[i];
    }
    for (int i = 0; i < Side; ++i) {
      Vector results[Side];
      Line(rows + i * Points, results);
#pragma GCC unroll 16
      for (int j = 0; j < Side; ++j) result[i * Side + j] = results[j];
    }
  }
};

inline void strided_results(const Vector* m, Vector* result) {
  contract_to_four(m, result);
  for (int k = 0; k < 4; ++k) result[k] = result[k] + m[5 + k];
}
template <int Before>
inline void strided_image_results(const Vector* m, Vector* result) {
  Vector shared[4];
  contract_to_four(m, shared);
  for (int k = 0; k < 4; ++k) {
    result[2 * k + Before] = shared[k];
    result[2 * k + 1 - Before] = m[5 + k];
  }
}
inline void strided_filter_results(const Vector* m, Vector* result) {
  Vector outer[2];
  contract_to_two(m, outer);
  result[0] = outer[0];
  result[1] = m[5];
  result[2] = outer[1];
}

using StridedOutputs = StridedContraction<kStridedPoints, 4, strided_results>;
template <int Before>
using StridedImageOutputs = StridedContraction<kStridedPoints, 8, strided_image_results<Before>>;
using StridedFilterOutputs = StridedContraction<kStridedFilters, 3, strided_filter_results>;

}  // namespace MOX_LANES
}  // namespace mox::winograd
