// What Winograd's convolutions do with their outputs before they store them (ops/processor/lanes.h).
#pragma once

#include <algorithm>
#include <array>

#include "ops/convolution/winograd/internal/tiles.h"
#include "ops/convolution/winograd/lanes/pixels_ahead.h"
#include "ops/convolution/winograd/lanes/transforms.h"

namespace mox::winograd {
inline namespace MOX_LANES {

// Outputs of one tile and block of channels: pixels [0, rows) x [0, columns) of what the transform made.
struct OutputPlace {
  int64_t block, rows, columns;
  int64_t corner, line;  // floats of the image before the first pixel, and from one row of pixels to the next
};

struct NoEpilogue {
  template <int M>
  void apply(const OutputPlace&, Vector*) {}
  void advance(int64_t) {}
};

// The moments of one group of tiles: [3][channels], how many pixels, their mean and the sum of their squared
// distances from it. Sums are taken of distances from the group's first pixel, so nothing cancels where the
// mean is large beside the deviation. Until finish() the three rows are that pixel, the sum and
// the sum of squares.
class Moments {
 public:
  Moments(float* rows, int64_t channels) : rows_(rows), channels_(channels) {}

  template <int M>
  void apply(const OutputPlace& place, const Vector* results) {
    float* at = rows_ + place.block * kLanes;
    const bool is_first = pixels_ == 0;
    const Vector pivot = is_first ? results[0] : load(at);
    Vector sum = is_first ? zero() : load(at + channels_);
    Vector squares = is_first ? zero() : load(at + 2 * channels_);
    if (is_first) store(at, pivot);
    if (place.rows == M && place.columns == M) {
      add_rows<M>(results, pivot, &sum, &squares);
    } else {
      for (int64_t i = 0; i < place.rows; ++i)
        for (int64_t j = 0; j < place.columns; ++j) {
          const Vector distance = results[i * M + j] - pivot;
          sum = sum + distance;
          squares = multiply_add(distance, distance, squares);
        }
    }
    store(at + channels_, sum);
    store(at + 2 * channels_, squares);
  }
  // That all blocks of a tile of so many pixels are there.
  void advance(int64_t pixels) { pixels_ += pixels; }

  void finish() {
    const Vector pixels = splat(pixels_);
    for (float* at = rows_; at < rows_ + channels_; at += kLanes) {
      const Vector sum = load(at + channels_), mean = sum / pixels;
      const Vector squares = subtract_product(sum, mean, load(at + 2 * channels_));
      store(at + channels_, load(at) + mean);
      // Rounding may leave a little less than nothing. NaN stays.
      store(at + 2 * channels_, maximum(zero(), squares));
      store(at, pixels);
    }
  }

 private:
  // Row by row, so that no sum waits for the one before it.
  template <int M>
  static void add_rows(const Vector* results, Vector pivot, Vector* sum, Vector* squares) {
    Vector sums[M], products[M];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      sums[i] = results[i * M] - pivot;
      products[i] = sums[i] * sums[i];
    }
#pragma GCC unroll 8
    for (int j = 1; j < M; ++j)
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        const Vector distance = results[i * M + j] - pivot;
        sums[i] = sums[i] + distance;
        products[i] = multiply_add(distance, distance, products[i]);
      }
#pragma GCC unroll 8
    for (int i = 1; i < M; ++i) {
      sums[0] = sums[0] + sums[i];
      products[0] = products[0] + products[i];
    }
    *sum = *sum + sums[0];
    *squares = *squares + products[0];
  }

  float* rows_;
  int64_t channels_, pixels_ = 0;
};

// ReluGradient for the tiles of one group.
class GradientSums {
 public:
  GradientSums(const ReluGradient& gradient, int64_t group, int64_t channels)
      : gradient_(gradient), sums_(gradient.sums + group * 2 * channels), channels_(channels) {
    std::fill_n(sums_, 2 * channels, 0.0f);
  }

  template <int M>
  void apply(const OutputPlace& place, Vector* results) {
    if (gradient_.result)
      gradient_.more ? apply<M, true, true>(place, results) : apply<M, true, false>(place, results);
    else
      gradient_.more ? apply<M, false, true>(place, results) : apply<M, false, false>(place, results);
  }
  void advance(int64_t) {}

 private:
  template <int M, bool kHasResult, bool kHasMore>
  void apply(const OutputPlace& place, Vector* results) {
    const int64_t channel = place.block * kLanes;
    const Vector mean = load(gradient_.mean + channel), factor = load(gradient_.factor + channel),
                 offset = load(gradient_.offset + channel);
    Vector sum = load(sums_ + channel), product = load(sums_ + channels_ + channel);
    const auto take = [&](int64_t i, int64_t j) {
      const int64_t at = place.corner + i * place.line + j * kLanes;
      const Vector distance = load(gradient_.x + at) - mean;
      Vector dz = results[i * M + j];
      if constexpr (kHasMore) dz = dz + load(gradient_.more + at);
      const Vector given = kHasResult ? load(gradient_.result + at) : multiply_add(distance, factor, offset);
      dz = where_positive(given, dz);
      sum = sum + dz;
      product = multiply_add(dz, distance, product);
      results[i * M + j] = dz;
    };
    if (place.rows == M && place.columns == M) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int64_t j = 0; j < M; ++j) take(i, j);
    } else {
      for (int64_t i = 0; i < place.rows; ++i)
        for (int64_t j = 0; j < place.columns; ++j) take(i, j);
    }
    store(sums_ + channel, sum);
    store(sums_ + channels_ + channel, product);
  }

  ReluGradient gradient_;
  float* sums_;  // [2][channels]
  int64_t channels_;
};

// What the epilogue of tiles [first, last) will read, fetched like what the next tiles will.
class EpilogueAhead {
 public:
  EpilogueAhead(const Problem& p, const ReluGradient& gradient, int64_t first, int64_t last)
      : images_{ahead(p, gradient.x, first, last), ahead(p, gradient.more, first, last),
                ahead(p, gradient.result, first, last)} {}
  void fetch() {
    for (PixelsAhead<float>& image : images_) image.fetch();
  }

 private:
  static PixelsAhead<float> ahead(const Problem& p, const float* image, int64_t first, int64_t last) {
    const int64_t side = p.outputs_a_side();
    return {
        p, {image, p.out_channels, p.out_height, p.out_width}, {side, side, 0}, first, image ? last : first};
  }
  std::array<PixelsAhead<float>, 3> images_;
};

}  // namespace MOX_LANES
}  // namespace mox::winograd
