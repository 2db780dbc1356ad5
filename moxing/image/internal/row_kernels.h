// The two passes of the resampler over a row, for AVX2 and for AVX-512. They compute the same integers, so
// that their results are equal bit for bit, whatever the order of their sums.
//
// First source rows are combined into 16-bit columns with 7 bits of fraction (255 * 2^7 < 2^15, and with
// weights of 14 bits all sums stay below 2^31), then columns into pixels. All three planes share the weights.
//
// Up to kFewRows rows, as nearly all images have, are combined in 16 bits: a pixel v of weight w (in 2^-16,
// 2^16 - 1 at most) counts as floor(v 2^8 w 2^-16), and half of the number of rows is added to make up for
// what that cuts off. More rows are summed exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "moxing/image/resample.h"

namespace mox::image::internal {

constexpr int kFractionBits = 7;

// Kernels read and write so many columns, bytes or 16-bit numbers, past the last one of a row.
constexpr int kColumnSlack = 64;

constexpr int kFewRows = 16;

// A weight of kWeightBits as it counts there.
[[gnu::always_inline]] constexpr int few_rows_weight(int weight) {
  return weight << 2 < 0xffff ? weight << 2 : 0xffff;
}

// The `count` source rows of one output row: rows[i] is the red plane's, the others lie `plane_stride` bytes
// behind each other. They are followed by one more pointer to a row, and their weights by a 0, where `count`
// is odd. Of the rows `ahead` the same columns are fetched into the caches.
struct SourceRows {
  const uint8_t* const* rows;
  const int16_t* weights;
  int count;
  ptrdiff_t plane_stride;
  const uint8_t* const* ahead;
  int ahead_count;
};

// Three planes of columns.
struct Columns {
  int16_t* first;
  ptrdiff_t plane_stride;
};

// The horizontal weights as the kernels load them (made by RowTaps); pointers without owners, because code
// that is compiled for AVX-512 must not instantiate functions that others share.
//
// AVX2: groups of 8 outputs in steps of 4 columns. starts: each output's first column. A step of a group has
// 32 weights: 4 each of outputs 0, 1, 4, 5, then of 2, 3, 6, 7. AVX-512: groups of 16 outputs in steps of 2
// columns. starts: each group's first column. A step of a group has 32 weights, 2 for each output; `places`
// has the columns that these belong to, counted from the group's first, for the first step; each step goes on
// by 2.
struct TapsView {
  int outputs, steps;
  const int32_t* starts;
  const int16_t* weights;
  const int16_t* places;
  bool wide;  // AVX-512: places of 32 to 63 occur in some step
};

// Where a row goes as numbers (see NumberPlanes). `streamed`: past the caches; the planes are on 64-byte
// boundaries then.
template <typename Value>
struct NumberRow {
  Value* planes[kPlanes];
  float scale[kPlanes], offset[kPlanes];
  bool streamed;
};

struct RowKernels {
  // The first `width` columns.
  void (*combine)(const SourceRows& source, int width, const Columns& out);
  // As bytes: up to 15 more than outputs are written.
  void (*to_bytes)(const Columns& columns, const TapsView& taps, uint8_t* const planes[kPlanes]);
  // As numbers, exactly as many as outputs.
  void (*to_floats)(const Columns& columns, const TapsView& taps, const NumberRow<float>& row);
  void (*to_bfloat16s)(const Columns& columns, const TapsView& taps, const NumberRow<BFloat16>& row);
};

extern const RowKernels kAvx2RowKernels;
extern const RowKernels kAvx512RowKernels;  // AVX512F and AVX512BW

}  // namespace mox::image::internal
