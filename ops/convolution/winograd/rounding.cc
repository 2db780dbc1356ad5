#include "ops/convolution/winograd/rounding.h"

#include <algorithm>
#include <cmath>

#include "ops/convolution/winograd/problem.h"

namespace mox {
namespace {

using winograd::Problem;
using winograd::Stride;

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kOfTransforms = 16, kMargin = 0.5;  // of the sum of squares
constexpr double kErrorInBFloat16 = 0.01;

double amplification(const Problem& p, ConvolutionResult result) {
  if (p.stride != Stride::kOne)
    return result == ConvolutionResult::kOutput          ? 10.86
           : result == ConvolutionResult::kInputGradient ? 15.78
                                                         : 9.12;
  const bool of_filter = result == ConvolutionResult::kFilterGradient;
  if (p.window == 3) return of_filter ? 24.2 : 31.45;
  if (p.tile == 6) return of_filter ? 45.12 : 19.77;
  return of_filter ? 35.95 : 29.76;
}

// Of `count` addends at most `in_a_row`, and then sums of them, one for at least `in_a_sum`.
double summed(int64_t count, double in_a_row, double in_a_sum) {
  const double addends = count;
  return std::min(addends, in_a_row) + addends / in_a_sum;
}

double summed_channels(const Problem& p) {
  return p.is_wide() ? summed(p.in_channels, 192, 64) : p.in_channels;
}
double summed_tiles(const Problem& p) {
  return p.gradient_is_wide() ? summed(p.tiles(), 192, 64) : 8 + summed(p.tiles(), 36, 96);
}

}  // namespace

double winograd_error(const ConvolutionGeometry& geometry, ConvolutionResult result) {
  if (geometry.x.dtype == DType::kBFloat16) return kErrorInBFloat16;
  const Problem p = result == ConvolutionResult::kInputGradient ? winograd::input_gradient_problem(geometry)
                                                                : winograd::forward_problem(geometry);
  const double addends = result == ConvolutionResult::kFilterGradient ? summed_tiles(p) : summed_channels(p);
  return amplification(p, result) * kUnitRoundoff * std::sqrt((kOfTransforms + addends) * kMargin);
}

}  // namespace mox
