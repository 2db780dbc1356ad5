// What the ops contribute to compilation: fusion rules and the conversion between layouts.
#pragma once

#include <string_view>
#include <vector>

#include "ops/convolution/winograd/convolution_class.h"
#include "runtime/graph/kernel.h"
#include "runtime/graph/rewrite.h"

namespace mox {

enum class Precision {
  kFloat32,
  // Convolutions, matrix products and what lies between convolutions; see
  // ops/fusion/internal/low_precision_rule.h.
  kBFloat16,
};

// Which images that a normalisation and its activation give to a convolution are computed again in the
// backward pass instead of kept for it: the same bits, less memory, more time. Unless kNone, cheap
// convolutions of shortcuts are as well.
enum class RecomputedNormalisations {
  kNone,
  // Where that takes little beside the convolution and frees much (ops/fusion/internal/batch_norm_rule.h).
  kCheap,
  kAll,
};
// Of the words none, auto and normalisation, which the option `recompute` takes.
RecomputedNormalisations recomputed_normalisations(std::string_view word);

// Above the bound of every convolution by Winograd's method (ops/convolution/winograd/rounding.h).
inline constexpr double kStatedConvolutionError = 0.01;

struct RuleOptions {
  Precision precision = Precision::kFloat32;  // where NodeTraits::compute_dtype says nothing
  RecomputedNormalisations recomputed = RecomputedNormalisations::kNone;
  // Convolutions sum directly, never through a transform that needs fewer multiplications but
  // rounds more (Winograd).
  bool direct_convolutions = false;
  // Those sum directly whose bound is above this, a part of the result's largest magnitude.
  double convolution_error = kStatedConvolutionError;
  // Those of these classes sum directly, too: where that was measured to be faster.
  ConvolutionClasses direct_classes = {};
};

// Every rule, in the order in which they should be applied: first the patterns around convolutions, matrix
// products and normalisations, then what is computed again in the backward pass (of normalisations, then of
// recomputed stretches), then the choice of precision, where instruction_set() has one, then which
// convolutions sum directly, then what convolutions do for normalisations, then chains of elementwise ops.
std::vector<NamedRule> default_rules(const RuleOptions& options = {});
// What the kernels of a graph that these rules have rewritten are to know (CompileOptions::hints).
KernelHints kernel_hints(const RuleOptions& options);

// What instruction_set() has for products of bfloat16 numbers.
enum class BFloat16Support {
  kNone,      // Precision::kBFloat16 cannot be compiled
  kEmulated,  // by conversions: slower than float32
  kNative,
};
BFloat16Support bfloat16_support();

// Converts between any two layouts that are not opaque (oneDNN's reorder).
Kernel convert_layout(const TensorType& type, const Layout& from, const Layout& to, const Team& team);

}  // namespace mox
