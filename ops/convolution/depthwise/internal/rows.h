// The inner loops of depthwise convolutions with windows of 3 x 3 and strides of 1 or 2: rows of one block of
// channels, [pixels][lanes]. The window's rows that lie in the image are listed, so there is no padding above
// and below.
#pragma once

#include <cstdint>

namespace mox::depthwise {

inline constexpr int kWindow = 3;

// Of the window.
struct FilterRow {
  const float* filter;  // [3][lanes]
  const float* pixels;  // of the image, from the first one that the first output's window has
};

// The same of the gradients.
struct GradientRow {
  const float* filter;  // [3][lanes]
  float* sums;          // [3][lanes]: the filter's gradient is added to it
  const float* dy;      // the row of y's gradient that this row of the window leads to
};

// Of an image's row: how many pixels it has and y's row, and how far the first window begins before it.
struct RowWidths {
  int64_t image, y, before;
};

// What is read or written in memory after this row, to be fetched while the row is computed: from each as
// much as an image's row has. Without it a core would wait for memory and compute in turns.
struct Ahead {
  static constexpr int kCount = 3;
  const float* from[kCount];
};

struct RowLoops {
  // Row of y; stride 1 or 2. One to three rows of the window.
  void (*convolve[2])(const FilterRow* rows, int count, int64_t width, float* y, const Ahead& ahead);
  // The gradient of an image's row, and what the row gives to the filter's.
  void (*differentiate[2])(const GradientRow* rows, int count, const RowWidths& widths, const float* image,
                           float* gradient, const Ahead& ahead);
};

extern const RowLoops kRowLoopsAvx2;

}  // namespace mox::depthwise
