// Winograd's minimal filtering on tiles of 6 x 6 pixels: the arithmetic, without knowledge of nodes or layouts.
//
// A convolution with a window of R x R (3 or 5) and stride 1 computes M x M outputs (M = 7 - R) from 6 x 6 inputs:
//   Y = A^T [ (G g G^T) * (B^T d B) ] A      (* element by element)
// with the points 0, 1, -1, 2, -2 and infinity. The products of all tiles at one of the 36 positions, summed over
// channels, are one matrix product: 36 instead of 144 (R = 3, 16 outputs) or 100 (R = 5, 4 outputs) multiplications. The
// gradient of the filter is the same formula with the roles of R and M exchanged, summed over tiles.
// Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016).
//
// Images are channel-blocked, [batch][channels / 16][height][width][16]; filters plain, [out][in][R][R].
#pragma once

#include <cstdint>

namespace mox::winograd {

inline constexpr int kTile = 6;                  // pixels a side
inline constexpr int kPoints = kTile * kTile;
inline constexpr int64_t kLanes = 16;            // channels of a block

// The correlation of an image with a filter. Both channel counts are multiples of 16.
struct Problem {
  int64_t batch = 0, in_channels = 0, out_channels = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t before_y = 0, before_x = 0;  // rows and columns of padding before the image
  int window = 3;                      // R

  int64_t outputs_a_side() const { return kTile + 1 - window; }  // M
  int64_t tiles_y() const { return (out_height + outputs_a_side() - 1) / outputs_a_side(); }
  int64_t tiles_x() const { return (out_width + outputs_a_side() - 1) / outputs_a_side(); }
  int64_t tiles() const { return batch * tiles_y() * tiles_x(); }
};

// Implementations for one instruction set. `first` and `last` are tiles, counted through the batch; `chunk` is how many
// are worked on at a time, a multiple of 6.
struct Kernels {
  // filters: [out][in][R][R] -> u: [36][in][out], for in-channels [first, last).
  void (*transform_filter)(const Problem&, const float* filters, float* u, int64_t first, int64_t last);
  // The same with the filter turned by 180 degrees and the channels exchanged, as the gradient of the image needs it:
  // `filters` is [in][out][R][R] in terms of this problem.
  void (*transform_turned_filter)(const Problem&, const float* filters, float* u, int64_t first, int64_t last);
  // y = x correlated with the filter, plus bias[out] unless null. scratch: chunk * 36 * (in + out) floats.
  void (*correlate)(const Problem&, const float* x, const float* u, const float* bias, float* y, int64_t first, int64_t last,
                    int64_t chunk, float* scratch);
  // sums: [36][out][in] += the products of the tiles of x and dy. scratch as above.
  void (*accumulate_filter)(const Problem&, const float* x, const float* dy, float* sums, int64_t first, int64_t last,
                            int64_t chunk, float* scratch);
  // filters [out][in][R][R] = the inverse transform of the sum of `parts` sums that lie one after the other, in order, for
  // out-channels [first, last).
  void (*finish_filter)(const Problem&, const float* sums, int64_t parts, float* filters, int64_t first, int64_t last);
};

extern const Kernels kAvx512;

}  // namespace mox::winograd
