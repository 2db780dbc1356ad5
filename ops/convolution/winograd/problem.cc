#include "ops/convolution/winograd/problem.h"

#include <utility>

#include "ops/processor/last_level_cache.h"

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
  Problem p = {.batch = g.x.shape[0],
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

bool is_streamed(int64_t floats, const float* image) {
  static const int64_t threshold =
      last_level_cache_of(cache_report()) / 8 / static_cast<int64_t>(sizeof(float));
  return floats >= threshold && reinterpret_cast<uintptr_t>(image) % 64 == 0;
}

}  // namespace mox::winograd
