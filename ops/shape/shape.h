// Shapes, and the moving of elements: nothing here computes, but for the sums that undo a broadcast.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

// A value that is part of the graph: the array as it is when the function is called.
// Throws InvalidArgument for an undefined array, FailedPrecondition outside of a model function. No gradient.
Tensor constant(const Array& value, SourceLocation where = SourceLocation::current());

// A float32 scalar.
Tensor constant(float value, SourceLocation where = SourceLocation::current());

// A tensor of which every element is `value`.
//
//   shape: extents >= 0; dtype: any; value: must be a value of an integer dtype or bool exactly, is rounded
//   to a floating one.
// Throws InvalidArgument otherwise, FailedPrecondition outside of a model function.
Tensor fill(std::vector<int64_t> shape, double value, DType dtype = DType::kFloat32,
            SourceLocation where = SourceLocation::current());

// Zeros and ones of the type of x. They do not depend on x's values: no gradient.
Tensor zeros_like(const Tensor& x, SourceLocation where = SourceLocation::current());
Tensor ones_like(const Tensor& x, SourceLocation where = SourceLocation::current());

// The same elements in row-major order under another shape.
//
//   x: any dtype, any shape; the result has x's dtype and the shape `shape`.
//   shape: extents >= 0, of which one may be -1: it takes what remains of x's elements.
// Throws InvalidArgument if the number of elements differs, if more than one extent is -1, or if -1 could
// stand for any number because another extent is 0. Gradient: reshaped back. Costs nothing at run time.
Tensor reshape(const Tensor& x, std::vector<int64_t> shape, SourceLocation where = SourceLocation::current());

// Keeps the first axis and joins all others: [batch, a, b, ...] becomes [batch, a * b * ...]; [batch] becomes
// [batch, 1].
//
//   x: any dtype, at least one axis.
// Throws InvalidArgument for a scalar. Gradient: reshaped back. Costs nothing at run time.
Tensor flatten(const Tensor& x, SourceLocation where = SourceLocation::current());

// Inserts an axis of extent 1 so that it becomes axis `axis` of the result: [a, b] becomes [1, a, b] for axis
// 0 and [a, b, 1] for axis 2 or -1.
//
//   x: any dtype, any shape; axis in [-rank - 1, rank], rank being that of x.
// Throws InvalidArgument for another axis. Gradient: the axis removed. Costs nothing at run time.
Tensor expand_dims(const Tensor& x, int64_t axis, SourceLocation where = SourceLocation::current());

// Removes axes of extent 1: those named by `axes`, or all of them if none is named.
//
//   x: any dtype, any shape; axes in [-rank, rank).
// Throws InvalidArgument for an axis outside, named twice, or of another extent than 1.
// Gradient: reshaped back. Costs nothing at run time.
Tensor squeeze(const Tensor& x, std::vector<int64_t> axes = {},
               SourceLocation where = SourceLocation::current());

// Reorders the axes: axis i of the result is axis permutation[i] of x.
//
//   x: any dtype, any shape; permutation: every axis of x once, in [-rank, rank).
// Throws InvalidArgument otherwise. Gradient: the inverse permutation.
Tensor transpose(const Tensor& x, std::vector<int64_t> permutation,
                 SourceLocation where = SourceLocation::current());

// Swaps the last two axes. Throws InvalidArgument if x has fewer than two.
Tensor transpose(const Tensor& x, SourceLocation where = SourceLocation::current());

// Puts tensors one behind the other along `axis`.
//
//   inputs: at least one; one dtype (any), one rank >= 1, equal extents on every other axis; axis in [-rank,
//   rank).
// Throws InvalidArgument otherwise. Gradient: each input's part of the result's gradient.
Tensor concat(std::vector<Tensor> inputs, int64_t axis, SourceLocation where = SourceLocation::current());

// Cuts a tensor along `axis` into `parts` pieces of equal extent.
//
//   x: any dtype, rank >= 1; parts >= 1 divides the extent of the axis; axis in [-rank, rank).
// Throws InvalidArgument otherwise. Gradient: the pieces' gradients put together (zeros for pieces that are
// not used).
std::vector<Tensor> split(const Tensor& x, int64_t parts, int64_t axis = 0,
                          SourceLocation where = SourceLocation::current());

// The same with pieces of the given extents >= 0, whose sum is the extent of the axis; at least one.
std::vector<Tensor> split_sizes(const Tensor& x, std::vector<int64_t> sizes, int64_t axis = 0,
                                SourceLocation where = SourceLocation::current());

// Joins tensors of one type along a new axis, which becomes axis `axis` of the result: n tensors [a, b]
// become [n, a, b] for axis 0.
//
//   inputs: at least one; one dtype (any) and one shape; axis in [-rank - 1, rank].
// Throws InvalidArgument otherwise. Gradient: the parts of the result's gradient.
Tensor stack(const std::vector<Tensor>& inputs, int64_t axis = 0,
             SourceLocation where = SourceLocation::current());

// The slices of a tensor along `axis`, without that axis: [n, a, b] becomes n tensors [a, b] for axis 0.
//
//   x: any dtype, rank >= 1, extent >= 1 on the axis; axis in [-rank, rank).
// Throws InvalidArgument otherwise. Gradient: the slices' gradients put together.
std::vector<Tensor> unstack(const Tensor& x, int64_t axis = 0,
                            SourceLocation where = SourceLocation::current());

// The box of `size` elements an axis that starts at `begin`: result[i, j, ...] = x[begin[0] + i, begin[1] +
// j, ...].
//
//   x: any dtype, any shape; begin and size have an entry for every axis; size -1 means "to the end".
// Throws InvalidArgument if the box does not lie inside of x. Gradient: the result's gradient,
// surrounded by zeros.
Tensor slice(const Tensor& x, std::vector<int64_t> begin, std::vector<int64_t> size,
             SourceLocation where = SourceLocation::current());

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

// x repeated to `shape` by NumPy's rule: aligned at the last axis, extents equal or 1 in x. Any dtype. x
// itself if it has that shape. Gradient: sum_to(g, x's shape).
Tensor broadcast_to(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());

// x summed over the axes that broadcast_to(y, x's shape) would repeat for a y of `shape`, so that the result
// has that shape. float32, int32 or int64. x itself if it has that shape. Gradient:
// broadcast_to(g, x's shape).
Tensor sum_to(const Tensor& x, const Shape& shape, SourceLocation where = SourceLocation::current());

// x itself, of any dtype, through which no gradient passes: for derivatives it is a constant. Costs nothing
// at run time.
Tensor stop_gradient(const Tensor& x, SourceLocation where = SourceLocation::current());

}  // namespace mox
