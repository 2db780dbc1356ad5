// What a filter gradient of a 1x1 convolution is cut into, and the kernels of it.
//
// It is one matrix product, dw[out][in] = sum over the positions of y of dy[position][out] * x[position][in],
// with images [batch][channels / lanes][height][width][lanes] of float32 or bfloat16. A task is a block of
// dw, summed over some of the positions.
#pragma once

#include <cstdint>
#include <span>

#include "ops/convolution/geometry/convolution_extents.h"
#include "runtime/tensor/dtype.h"

namespace mox::pointwise_filter {

// Terms of the sums that are multiplied at a time: of bfloat16 numbers, two positions are a term.
inline constexpr int64_t kMostTerms = 96;
// Blocks of channels in a panel of packed x, by the lanes of a vector: where a block of dw is cut into
// several, it is cut between panels.
constexpr int64_t panel_blocks(int64_t lanes) { return lanes >= 16 ? 4 : 2; }
// Channels of a block of dw: 128 KiB of sums beside two chunks of packed terms in an L2 cache of 1 MiB.
inline constexpr int64_t kMostOut = 256, kMostIn = 128;

// Both channel counts are multiples of the lanes.
struct Problem : ConvolutionExtents {
  int64_t lanes = 16;  // of a vector, and channels of a block
  int64_t stride_y = 1, stride_x = 1;
  int64_t chunk = 0;  // positions that are packed together: of kMostTerms terms or less

  int64_t positions() const { return batch * out_height * out_width; }
  int64_t chunks() const { return (positions() + chunk - 1) / chunk; }
};

struct Task {
  int64_t first_out, outs, first_in, ins;  // the block of dw: whole vectors, at most kMostOut x kMostIn
  int64_t first_chunk, last_chunk;         // of positions; not empty
  int64_t part;                            // of the positions: where the block is written
};

// Floats of scratch memory for run_tasks: the sums of a block, and two chunks of packed terms.
inline constexpr int64_t kScratchFloats = kMostOut * kMostIn + 2 * kMostTerms * (kMostOut + kMostIn);

// Runs the tasks one after the other, on the calling thread: dw is [parts][out_channels][in_channels].
// `scratch`: kScratchFloats, aligned to 64 bytes. The sum of an element runs over the positions of its task
// in order.
void run_tasks_avx2(const Problem& problem, const float* x, const float* dy, std::span<const Task> tasks,
                    float* dw, float* scratch);
void run_tasks_avx512(const Problem& problem, const float* x, const float* dy, std::span<const Task> tasks,
                      float* dw, float* scratch);
void run_tasks_avx512_bf16(const Problem& problem, const BFloat16* x, const BFloat16* dy,
                           std::span<const Task> tasks, float* dw, float* scratch);

}  // namespace mox::pointwise_filter
