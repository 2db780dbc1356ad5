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
  if (p.step != Step::kOne) return 9;
  if (p.window != 5 || p.in_channels * p.out_channels > kLargestFilter / 2) return 6;
  const int64_t small = p.tiles() * p.points();
  p.tile = 8;
  return p.tiles() * p.points() < small ? 8 : 6;
}

}  // namespace

Problem forward_problem(const ConvolutionGeometry& g) {
  Problem p = {.lanes = processor().lanes,
               .batch = g.x.shape[0],
               .in_channels = g.x.shape[1],
               .out_channels = g.y.shape[1],
               .in_height = g.x.shape[2],
               .in_width = g.x.shape[3],
               .out_height = g.y.shape[2],
               .out_width = g.y.shape[3],
               .before_y = g.window[0].before,
               .before_x = g.window[1].before,
               .window = static_cast<int>(g.w.shape[2]),
               .step = g.window[0].stride == 1 ? Step::kOne : Step::kTwo};
  p.tile = best_tile(p);
  return p;
}

Problem input_gradient_problem(const ConvolutionGeometry& g) {
  Problem p = forward_problem(g);
  std::swap(p.in_channels, p.out_channels);
  std::swap(p.in_height, p.out_height);
  std::swap(p.in_width, p.out_width);
  if (p.step == Step::kTwo) {
    p.step = Step::kHalf;
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
  if (p.step == Step::kOne) return (is_wide ? kernels_avx512 : kernels_avx2)(p.tile, p.window);
  return (is_wide ? strided_kernels_avx512 : strided_kernels_avx2)(p.step, p.before_y);
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
