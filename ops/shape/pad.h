#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// Elements that `pad` adds along one axis.
struct PadAmount {
  int64_t before = 0;
  int64_t after = 0;
};

// Surrounds a tensor with a constant.
//
//   x: any dtype, any shape; amounts: one for every axis, each >= 0;
//   value: the constant; it must be a value of x's dtype (no fraction for integers, 0 or 1 for bool).
// Throws InvalidArgument otherwise. Gradient: the inner part of the result's gradient.
Tensor pad(const Tensor& x, const std::vector<PadAmount>& amounts, double value = 0.0,
           SourceLocation where = SourceLocation::current());

}  // namespace mox
