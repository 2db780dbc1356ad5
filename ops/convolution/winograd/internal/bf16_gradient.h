// The gradient of a 3 x 3 filter by Winograd's method, of bfloat16 images: the stages, without knowledge of
// nodes or layouts.
//
// Tiles are of 4 x 4 (tiles.h). Two tiles that follow each other are two terms of a sum: what the
// transforms round to bfloat16 of them lies in the place of one float, the first in its lower half. Products
// are added up in float32. The points' matrices of a chunk's tiles are [channels / 16][pairs][16]: a stage
// reads and writes lines that follow each other. The sums are cut into blocks of the filter. A block's sums
// of all points lie together: they stay in a core's cache until they are finished.
#pragma once

#include "ops/convolution/winograd/internal/tiles.h"

namespace mox::winograd {

// Out- and in-channels of a block, but for the last ones.
inline constexpr int64_t kBlockRows = 32, kBlockColumns = 64;

struct FilterBlock {
  int64_t first_row, rows, first_column, columns;  // out- and in-channels

  // Floats between the sums of two points, and of all.
  int64_t point_stride() const { return winograd::point_stride(rows * kBlockColumns); }
};

// Floats of the sums of a whole block: [points][kBlockRows][kBlockColumns], points
// FilterBlock::point_stride() apart.
inline constexpr int64_t kBlockFloats = 16 * point_stride(kBlockRows * kBlockColumns);

// Stages for a chunk of which `rows` is even. Matrices and sums lie at multiples of 64 bytes.
struct PairGradientKernels {
  // x -> v, dy -> d: [points][channels / 16][rows / 2][16] of pairs (points point_stride(rows / 2 * channels)
  // apart), for pairs [first, last).
  void (*transform_image)(const Problem&, const TileChunk&, const BFloat16* x, float* v, int64_t first,
                          int64_t last);
  void (*transform_gradient)(const Problem&, const TileChunk&, const BFloat16* dy, float* d, int64_t first,
                             int64_t last);
  // sums of a block = d^T v, added to what is there if `adds`.
  void (*accumulate)(const Problem&, const TileChunk&, const FilterBlock&, const float* d, const float* v,
                     float* sums, bool adds);
  // A block of filters, [out][in][3][3], from the sum of `parts` sums that lie `part_floats` apart, in order.
  void (*finish)(const Problem&, const FilterBlock&, const float* sums, int64_t parts, int64_t part_floats,
                 float* filters);
};

const PairGradientKernels& pair_gradient_kernels_avx512_bf16();

}  // namespace mox::winograd
