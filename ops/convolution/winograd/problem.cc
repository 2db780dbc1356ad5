#include "ops/convolution/winograd/problem.h"

#include <fmt/format.h>

#include <utility>

#include "ops/processor/last_level_cache.h"
#include "ops/processor/processor.h"

namespace mox::winograd {
namespace {

// The tile with fewer multiplications. Larger tiles round more and need more memory: for 3 x 3 windows they
// gain too little.
int best_tile(Problem p) {
  if (p.stride != Stride::kOne) return 9;
  if (p.window != 5 || p.in_channels * p.out_channels > kLargestFilter / 2) return 6;
  const int64_t small = p.tiles() * p.points();
  p.tile = 8;
  return p.tiles() * p.points() < small ? 8 : 6;
}

}  // namespace

Problem forward_problem(const ConvolutionGeometry& g) {
  Problem p = {g.extents()};
  p.lanes = processor().lanes;
  p.before_y = g.window[0].before;
  p.before_x = g.window[1].before;
  p.window = static_cast<int>(g.w.shape[2]);
  p.stride = g.window[0].stride == 1 ? Stride::kOne : Stride::kTwo;
  p.tile = best_tile(p);
  return p;
}

Problem input_gradient_problem(const ConvolutionGeometry& g) {
  Problem p = forward_problem(g);
  std::swap(p.in_channels, p.out_channels);
  std::swap(p.in_height, p.out_height);
  std::swap(p.in_width, p.out_width);
  if (p.stride == Stride::kTwo) {
    p.stride = Stride::kHalf;
    return p;
  }
  p.before_y = p.window - 1 - p.before_y;
  p.before_x = p.window - 1 - p.before_x;
  p.tile = 6;
  p.tile = best_tile(p);
  return p;
}

const Kernels& kernels_of(const Problem& p) {
  const bool is_wide = p.lanes >= 16;
  if (p.stride == Stride::kOne) return (is_wide ? kernels_avx512 : kernels_avx2)(p.tile, p.window);
  return (is_wide ? strided_kernels_avx512 : strided_kernels_avx2)(p.stride, p.before_y);
}

const WideKernels& wide_kernels_of(const Problem& p) {
  return p.lanes >= 16 ? wide_kernels_avx512() : wide_kernels_avx2();
}

Layout blocked_layout(const Problem& p, const TensorType& image) { return channel_blocked(image, p.lanes); }

std::string implementation_of(const Problem& p, std::string_view form) {
  return fmt::format("winograd{0}x{0}{1}:{2}", p.tile, form, p.lanes >= 16 ? "avx512_core" : "avx2");
}

bool is_streamed(int64_t floats, const float* image) {
  static const int64_t threshold =
      last_level_cache_of(cache_report()) / 8 / static_cast<int64_t>(sizeof(float));
  return floats >= threshold && reinterpret_cast<uintptr_t>(image) % 64 == 0;
}

}  // namespace mox::winograd
