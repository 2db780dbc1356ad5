// The loops of internal/rows.h (ops/processor/lanes.h). What is done to a pixel does not depend on where it
// lies in a block of pixels, so a row's width decides nothing but speed.
#pragma once

#include "ops/convolution/depthwise/internal/rows.h"
#include "ops/processor/lanes.h"

namespace mox::depthwise {
inline namespace MOX_LANES {
namespace {

using namespace lanes;

// body.operator()<count>()
template <typename Body>
inline void with_count(int count, const Body& body) {
  if (count == 3) return body.template operator()<3>();
  if (count == 2) return body.template operator()<2>();
  body.template operator()<1>();
}

// The cache line with pixel `c` of each.
inline void fetch(const Ahead& ahead, int64_t c) {
#pragma GCC unroll 3
  for (const float* from : ahead.from) _mm_prefetch(from + c * kLanes, _MM_HINT_T0);
}

template <int kRows, int kStride>
inline void convolve_row(const FilterRow* rows, int64_t width, float* y, const Ahead& ahead) {
  Vector filter[kRows][kWindow];
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kWindow; ++k) filter[r][k] = load(rows[r].filter + k * kLanes);
  // Side by side, to hide the latency of a sum; with the filter they fit into 16 registers.
  constexpr int kTogether = 4;
  const auto pixels = [&]<int kCount>(int64_t first) {
    Vector sums[kCount];
#pragma GCC unroll 4
    for (Vector& sum : sums) sum = zero();
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
      const float* from = rows[r].pixels + first * kStride * kLanes;
#pragma GCC unroll 3
      for (int k = 0; k < kWindow; ++k)
#pragma GCC unroll 4
        for (int i = 0; i < kCount; ++i)
          sums[i] = multiply_add(load(from + (i * kStride + k) * kLanes), filter[r][k], sums[i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) store(y + (first + i) * kLanes, sums[i]);
  };
  int64_t first = 0;
  for (; first + kTogether <= width; first += kTogether) {
    pixels.template operator()<kTogether>(first);
#pragma GCC unroll 4
    for (int i = 0; i < kTogether * kStride; i += 2) fetch(ahead, first * kStride + i);
  }
  for (; first < width; ++first) pixels.template operator()<1>(first);
}

// The sums of a row of the filter's gradient while they are in registers. Those of a row of pixels are added
// to the others' as one, so that rounding does not grow with the image.
template <int kRows>
struct FilterSums {
  Vector values[kRows][kWindow];

  FilterSums() {
    for (auto& row : values)
      for (Vector& value : row) value = zero();
  }
  void add_to(const GradientRow* rows) const {
    for (int r = 0; r < kRows; ++r)
      for (int k = 0; k < kWindow; ++k) {
        float* sum = rows[r].sums + k * kLanes;
        store(sum, load(sum) + values[r][k]);
      }
  }
};

// A pixel and its gradient, on which taps of the window act one after the other.
template <int kRows>
struct Pixel {
  const GradientRow* rows;
  FilterSums<kRows>& sums;
  Vector image, gradient = zero();

  // `k`: of the window's columns; `at`: of y's row.
  template <int k>
  void tap(int64_t at) {
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
      const Vector dy = load(rows[r].dy + at * kLanes);
      gradient = multiply_add(dy, load(rows[r].filter + k * kLanes), gradient);
      sums.values[r][k] = multiply_add(dy, image, sums.values[r][k]);
    }
  }
};

template <int kRows>
inline void differentiate_row(const GradientRow* rows, const RowWidths& widths, const float* image,
                              float* gradient, const Ahead& ahead) {
  FilterSums<kRows> sums;
  const int64_t last = widths.image - 1;
  const auto pixel = [&]<bool kIsFirst, bool kIsLast>(int64_t c) {
    Pixel<kRows> p{rows, sums, load(image + c * kLanes)};
    if constexpr (!kIsLast) p.template tap<0>(c + 1);
    p.template tap<1>(c);
    if constexpr (!kIsFirst) p.template tap<2>(c - 1);
    store(gradient + c * kLanes, p.gradient);
  };
  if (last == 0) {
    pixel.template operator()<true, true>(0);
  } else {
    pixel.template operator()<true, false>(0);
    int64_t c = 1;
    for (; c + 2 <= last; c += 2) {
      fetch(ahead, c);
      pixel.template operator()<false, false>(c);
      pixel.template operator()<false, false>(c + 1);
    }
    if (c < last) pixel.template operator()<false, false>(c);
    pixel.template operator()<false, true>(last);
  }
  sums.add_to(rows);
}

// With a stride of 2 every other pixel is in the middle of one window, and those between them are at the
// borders of two.
template <int kRows>
inline void differentiate_row_by_two(const GradientRow* rows, const RowWidths& widths, const float* image,
                                     float* gradient, const Ahead& ahead) {
  FilterSums<kRows> sums;
  for (int64_t c = 0; c < widths.image; ++c) {
    Pixel<kRows> p{rows, sums, load(image + c * kLanes)};
    const int64_t place = c + widths.before, y = place / 2;
    if (place % 2 == 1) {
      fetch(ahead, c);
      p.template tap<1>(y);
    } else {
      if (y < widths.y) p.template tap<0>(y);
      if (y > 0) p.template tap<2>(y - 1);
    }
    store(gradient + c * kLanes, p.gradient);
  }
  sums.add_to(rows);
}

template <int kStride>
void convolve(const FilterRow* rows, int count, int64_t width, float* y, const Ahead& ahead) {
  with_count(count, [&]<int kRows>() { convolve_row<kRows, kStride>(rows, width, y, ahead); });
}

void differentiate(const GradientRow* rows, int count, const RowWidths& widths, const float* image,
                   float* gradient, const Ahead& ahead) {
  with_count(count, [&]<int kRows>() { differentiate_row<kRows>(rows, widths, image, gradient, ahead); });
}

void differentiate_by_two(const GradientRow* rows, int count, const RowWidths& widths, const float* image,
                          float* gradient, const Ahead& ahead) {
  with_count(count,
             [&]<int kRows>() { differentiate_row_by_two<kRows>(rows, widths, image, gradient, ahead); });
}

constexpr RowLoops kRowLoops{{convolve<1>, convolve<2>}, {differentiate, differentiate_by_two}};

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::depthwise
