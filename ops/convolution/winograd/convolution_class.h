// Classes of convolutions that Winograd's kernels can compute (winograd.h). Within one of them the direct sum
// takes about the same part or multiple of their time, so what one convolution of it was measured to take
// decides for all of it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "ops/convolution/winograd/rounding.h"

namespace mox {

struct ConvolutionClass {
  int window = 3;  // 3 or 5
  int stride = 1;  // 1 or 2
  // 16, 32 ... 512: the power of 2 that is nearest to the geometric mean of in- and out-channels, or the end
  // beyond which it lies.
  int channels = 16;
  ConvolutionResult result = ConvolutionResult::kOutput;

  // clang-tidy 14 takes what it compares with 0 for pointers.
  auto operator<=>(const ConvolutionClass&) const = default;  // NOLINT(modernize-use-nullptr)
};

using ConvolutionClasses = std::set<ConvolutionClass>;

// Only where winograd_pays.
ConvolutionClass class_of(const ConvolutionGeometry& geometry, ConvolutionResult result);

// "3x3/2 128 dw, 5x5/1 16 y": window and stride, channels, and y, dx or dw. "none" where there is none.
std::string to_string(const ConvolutionClasses& classes);
// What to_string has made; nothing of any other text.
std::optional<ConvolutionClasses> convolution_classes_from_string(std::string_view text);

}  // namespace mox
