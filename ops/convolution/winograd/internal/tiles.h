// Winograd's minimal filtering: the arithmetic, without knowledge of nodes or layouts.
//
// A convolution with a window of R x R and stride 1 computes M x M outputs (M = T + 1 - R) from a tile of T x
// T inputs:
//   Y = A^T [ (G g G^T) * (B^T d B) ] A      (* element by element)
// with T points, one of them infinity. The products of all tiles at one of the T * T positions, summed over
// channels, are one matrix product. Multiplications an output: 16 / 4 of 9 (T = 4, R = 3), 36 / 16 of 9 (T =
// 6, R = 3), 36 / 4 of 25 (T = 6, R = 5), 64 / 16 of 25 (T = 8, R = 5). The gradient of the filter is the
// same formula with the roles of R and M exchanged, summed over tiles. Points: 0, 1, -1, from T = 6 on 2, -2
// and for T = 8 also 1/2, -1/2. Lavin & Gray, "Fast Algorithms for Convolutional Neural
// Networks" (CVPR 2016).
//
// Images are channel-blocked, [batch][channels / lanes][height][width][lanes], with the lanes of the
// processor's vectors; filters plain, [out][in][R][R].
#pragma once

#include <cstdint>

#include "ops/convolution/geometry/convolution_extents.h"
#include "runtime/tensor/dtype.h"

namespace mox::winograd {

// in x out channels up to which the transformed filter, 36 times as large, is kept in a core's cache.
inline constexpr int64_t kLargestFilter = 128 * 128;

// Floats between the matrices of two points, for matrices of `floats`. One cache line more than the matrix: a
// transform writes to all points in turn, and at a distance of a power of two all its lines would fall into
// one set of the cache.
constexpr int64_t point_stride(int64_t floats) { return floats + 16; }

// Whether an image of so many floats is written around the caches. It is if it takes more than an eighth of
// the last-level cache (last_level_cache.h): the next operator would find little of it there, and writing it
// that way moves a third less memory. The bits are the same, so this alone may look at the machine. What a
// step gains that way, and loses where the cache is larger, is in docs/benchmarks_training.md, at the end
// ("Which constants were measured, and where").
bool is_streamed(int64_t floats, const float* image);

// By how many pixels of the image the window moves from an output to the next: half a pixel is the gradient
// of the image of a convolution with strides of 2 (lanes/strided_transforms.h).
enum class Stride { kOne, kTwo, kHalf };

// The correlation of an image with a filter. Both channel counts are multiples of the lanes.
struct Problem : ConvolutionExtents {
  int64_t lanes = 16;  // of a vector, and channels of a block
  // rows and columns of padding before the image, with a stride of kHalf before the outputs
  int64_t before_y = 0, before_x = 0;
  int window = 3;  // R
  int tile = 6;    // T: 6, 8 for a window of 5, 4 for PairKernels, or 9 for strides other than 1
  Stride stride = Stride::kOne;
  // Of the images and filters in memory, where this problem is a part of the out-channels; 0: just these.
  int64_t all_out_channels = 0;

  int64_t out_channels_in_memory() const { return all_out_channels > 0 ? all_out_channels : out_channels; }
  int points() const { return tile * tile; }
  int filter_points() const { return stride == Stride::kOne ? points() : 36; }  // of transformed filters
  bool is_wide() const { return in_channels * out_channels > kLargestFilter; }  // for WideKernels
  // The gradient of the filter gains earlier: it has one sum of all tiles there and not one for
  // each part of them.
  bool gradient_is_wide() const {
    return stride == Stride::kOne && (is_wide() || (window == 3 && in_channels * out_channels > 64 * 64));
  }
  int64_t filter_stride() const { return point_stride(in_channels * out_channels); }
  int64_t filter_pair_stride() const { return point_stride(in_channels * out_channels / 2); }
  int64_t outputs_a_side() const {  // M
    return stride == Stride::kOne ? tile + 1 - window : stride == Stride::kTwo ? 4 : 8;
  }
  int64_t tiles_y() const { return (out_height + outputs_a_side() - 1) / outputs_a_side(); }
  int64_t tiles_x() const { return (out_width + outputs_a_side() - 1) / outputs_a_side(); }
  int64_t output_floats() const { return batch * out_channels_in_memory() * out_height * out_width; }
  int64_t tiles() const { return batch * tiles_y() * tiles_x(); }
};

// The way of a gradient back through a relu behind a batch normalisation, whose image the correlation's
// outputs are the gradient of: not they are stored but
//   dz = outputs + more, where relu was given more than 0, and 0 elsewhere,
// with the sums that the normalisation's gradient needs. Images lie like the outputs.
struct ReluGradient {
  const float* x = nullptr;       // what was normalised
  const float* more = nullptr;    // or null
  const float* result = nullptr;  // of the relu; if null, relu was given (x - mean) * factor + offset
  const float *mean = nullptr, *factor = nullptr, *offset = nullptr;  // [out]
  // [chunks][2][out]: of dz and of dz * (x - mean), over the pixels of each chunk of tiles
  float* sums = nullptr;
};

// What is done with the outputs of a correlation while they are in registers, besides storing them. There are
// no moments of outputs with a bias, and none of gradients. Chunks are counted from tile 0.
struct Epilogue {
  // [chunks][3][out], unless null: of the pixels of each chunk of tiles how many there are, their mean and
  // the sum of their squared distances from it
  float* moments = nullptr;
  ReluGradient gradient = {};  // unless its sums are null
};

class RangesAhead;  // ranges_ahead.h

// Implementations for one instruction set. `first` and `last` are tiles, counted through the batch; `chunk`
// is how many are worked on at a time, a multiple of 12.
struct Kernels {
  // filters: [out][in][R][R] -> u: [points][in][out] (points filter_stride() apart), for
  // in-channels [first, last).
  void (*transform_filter)(const Problem&, const float* filters, float* u, int64_t first, int64_t last);
  // The same with the filter turned by 180 degrees and the channels exchanged, as the gradient of the image
  // needs it: `filters` is [in][out][R][R] in terms of this problem.
  void (*transform_turned_filter)(const Problem&, const float* filters, float* u, int64_t first,
                                  int64_t last);
  // y = x correlated with the filter, plus bias[out] unless null. scratch: points times
  // point_stride(chunk * in) + point_stride(chunk * out) floats. With an epilogue `first` is a multiple of
  // `chunk`.
  void (*correlate)(const Problem&, const float* x, const float* u, const float* bias, float* y,
                    const Epilogue& epilogue, int64_t first, int64_t last, int64_t chunk, float* scratch);
  // sums: [points][out][in] (points filter_stride() apart) = the products of the tiles of x and dy. scratch
  // as above.
  void (*accumulate_filter)(const Problem&, const float* x, const float* dy, float* sums, int64_t first,
                            int64_t last, int64_t chunk, float* scratch);
  // filters [out][in][R][R] = the inverse transform of the sum of `parts` sums that lie one after the other,
  // in order, for out-channels [first, last).
  void (*finish_filter)(const Problem&, const float* sums, int64_t parts, float* filters, int64_t first,
                        int64_t last);
  // Of so few images that they stay in a core's cache, all tiles of them; `ahead` is fetched meanwhile.
  // `chunk` may be a multiple of 8 as well if there are 16 or 32 in-channels. Null where the stride is not
  // kOne. As correlate, with chunks of the epilogue counted from the first of these images; y is written
  // around the caches if it `streams`.
  void (*correlate_images)(const Problem&, const float* x, const float* u, float* y, bool streams,
                           const Epilogue& epilogue, RangesAhead& ahead, int64_t chunk, float* scratch);
  // As accumulate_filter; `adds` to what is in `sums` or not.
  void (*accumulate_images)(const Problem&, const float* x, const float* dy, float* sums, bool adds,
                            RangesAhead& ahead, int64_t chunk, float* scratch);
};

// Of a Problem's `tile` and `window`.
const Kernels& kernels_avx2(int tile, int window);
const Kernels& kernels_avx512(int tile, int window);
// Of a Problem with a stride of kTwo or kHalf, and that many (0 or 1) rows and columns of padding before the
// larger image. Transformed filters and sums have filter_points() matrices.
const Kernels& strided_kernels_avx2(Stride stride, int64_t before);
const Kernels& strided_kernels_avx512(Stride stride, int64_t before);
// Those of a problem's lanes.
const Kernels& kernels_of(const Problem& problem);

// For filters that are too large to stay in a core's cache: the stages one by one, each for all tiles of a
// large chunk, so that the transformed filter is read once a chunk, point by point, and a point's tiles stay
// in the cache meanwhile. The matrices of the points are blocked, [columns / lanes][rows][lanes]. A stage is
// cut into ranges [first, last) of what it says; its results do not depend on the cut.
struct TileChunk {
  int64_t first_tile = 0;
  // tiles, a multiple of 6 for multiply and of 16 for accumulate_filter; rows past the last tile of the
  // problem are zero
  int64_t rows = 0;
};
struct WideKernels {
  // filters -> u [points][in][out], for in-channels; as in Kernels.
  void (*transform_filter)(const Problem&, const float* filters, float* u, int64_t first, int64_t last);
  void (*transform_turned_filter)(const Problem&, const float* filters, float* u, int64_t first,
                                  int64_t last);
  // x -> v [points][rows][in], dy -> d [points][rows][out], for rows.
  void (*transform_image)(const Problem&, const TileChunk&, const float* x, float* v, int64_t first,
                          int64_t last);
  void (*transform_gradient)(const Problem&, const TileChunk&, const float* dy, float* d, int64_t first,
                             int64_t last);
  // products [points][rows][out] = v u, for points.
  void (*multiply)(const Problem&, const TileChunk&, const float* v, const float* u, float* products,
                   int64_t first, int64_t last);
  // y from the products (plus bias[out] unless null), for rows.
  void (*store_outputs)(const Problem&, const TileChunk&, const float* products, const float* bias, float* y,
                        int64_t first, int64_t last);
  // sums [points][out][in] = d^T v, added to what is there after the first chunk; for points.
  void (*accumulate_filter)(const Problem&, const TileChunk&, const float* d, const float* v, float* sums,
                            int64_t first, int64_t last);
  // filters [out][in][R][R] from the sums, for out-channels.
  void (*finish_filter)(const Problem&, const float* sums, float* filters, int64_t first, int64_t last);
};

// Of windows of 3 and tiles of 6.
const WideKernels& wide_kernels_avx2();
const WideKernels& wide_kernels_avx512();
const WideKernels& wide_kernels_of(const Problem& problem);

// Out-channels of which PairKernels make the products of a chunk at a time.
inline constexpr int64_t kPanel = 64;

// Products of bfloat16 numbers, added up in float32: images, filters and what the transforms make of them are
// rounded to bfloat16. Two terms of a sum, in- or out-channels that are neighbours, lie in the place of one
// float: a pair. The gradient of the filter is in bf16_gradient.h.
struct PairKernels {
  // filters [out][in][R][R] -> u: [points][out / kPanel][in / 2][kPanel or what is left of out] pairs (points
  // filter_pair_stride() apart), for pairs of in-channels; the turned filter as in Kernels.
  void (*transform_filter)(const Problem&, const BFloat16* filters, float* u, int64_t first, int64_t last);
  void (*transform_turned_filter)(const Problem&, const BFloat16* filters, float* u, int64_t first,
                                  int64_t last);
  // y = x correlated with the filter, plus bias[out] unless null, for tiles [first, last), `chunk` (a
  // multiple of 6) at a time. scratch: points times point_stride(chunk * in / 2) + point_stride(chunk *
  // kPanel) floats.
  void (*correlate)(const Problem&, const BFloat16* x, const float* u, const float* bias, BFloat16* y,
                    int64_t first, int64_t last, int64_t chunk, float* scratch);
};

const PairKernels& pair_kernels_avx512_bf16();  // of windows of 3 and tiles of 4

}  // namespace mox::winograd
