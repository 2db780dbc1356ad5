// Reductions over axes.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

struct ReduceOptions {
  // To reduce, counted from the end if negative, each once; none named: all axes.
  std::vector<int64_t> axes = {};
  bool keep_dims = false;  // leave the reduced axes in the shape with an extent of 1
};

// The sum of x over `axes`. float32, int32 or int64 (integers wrap around); the sum of nothing is 0. float32
// sums are collected in float64, from partial sums of up to 4,096 elements in float32: within 2^-16.9 of
// the sum of the elements' magnitudes. Throws InvalidArgument for an axis that x does not have or that is
// named twice. Gradient: g for every element.
Tensor reduce_sum(const Tensor& x, const ReduceOptions& options = {},
                  SourceLocation where = SourceLocation::current());

// The mean of x over `axes`: the sum, collected as reduce_sum does, divided by the number of elements.
// float32; the mean of nothing is NaN (as in NumPy). Throws InvalidArgument for an axis that x does not have
// or that is named twice. Gradient: g / n for every element, n the number of elements that go into one mean.
Tensor reduce_mean(const Tensor& x, const ReduceOptions& options = {},
                   SourceLocation where = SourceLocation::current());

// The largest element of x over `axes`; NaN if there is one among them. float32, int32 or int64. Throws
// InvalidArgument for an axis that x does not have, that is named twice, or that is empty. Gradient: g,
// shared equally by all elements that are as large as the result (as in TensorFlow).
Tensor reduce_max(const Tensor& x, const ReduceOptions& options = {},
                  SourceLocation where = SourceLocation::current());

// The smallest element of x over `axes`; NaN if there is one among them. float32, int32 or int64. Throws
// InvalidArgument for an axis that x does not have, that is named twice, or that is empty. Gradient: g,
// shared equally by all elements that are as small as the result (as in TensorFlow).
Tensor reduce_min(const Tensor& x, const ReduceOptions& options = {},
                  SourceLocation where = SourceLocation::current());

}  // namespace mox
