// Elements by their index: reading, writing, ranking.
#pragma once

#include <cstdint>

#include "runtime/graph/tensor.h"

namespace mox {

// The slices of `x` along `axis` that `indices` name: for axis 0, result[i..., :] = x[indices[i...], :].
//
//   x: any dtype, rank >= 1; indices: int32 or int64, any shape; axis in [-rank, rank).
//   The result's shape is x's with the axis replaced by the shape of indices.
// Throws InvalidArgument from its shape rule, and while a plan runs if an index lies outside [0, extent of
// the axis): the text names the index, its position and the bound. Gradient: for x, unsorted_segment_sum (an
// index that occurs often receives the sum); none for indices.
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis = 0,
              SourceLocation where = SourceLocation::current());

// The rows of an embedding table that `ids` name: result[i..., :] = table[ids[i...], :].
//
//   table: [vocabulary, width], float32; ids: int32 or int64, any shape; result: [shape of ids..., width].
// Throws InvalidArgument from its shape rule, and while a plan runs for an id outside [0, vocabulary): the
// text names the id, its position and the size of the vocabulary. Gradient: for the table,
// unsorted_segment_sum (a dense [vocabulary, width]); none for ids.
Tensor embedding_lookup(const Tensor& table, const Tensor& ids,
                        SourceLocation where = SourceLocation::current());

// The sums of the slices of `x` that share a segment; the reverse of gather. For axis 0:
// result[s, :] = sum of x[i..., :] over all i with segments[i...] == s, zeros for a segment that
// no slice names.
//
//   x: float32, int32 or int64; segments: int32 or int64; `axis` in [0, rank of x - rank of segments]: from
//   there, x's shape contains the whole shape of segments, which the result replaces by one axis of extent
//   segment_count >= 0.
// The slices of a segment are added in their order, whatever the number of threads.
// Throws InvalidArgument from its shape rule, and while a plan runs for a segment outside [0, segment_count).
// Gradient: for x, gather; none for segments.
Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segments, int64_t segment_count, int64_t axis = 0,
                            SourceLocation where = SourceLocation::current());

// From each row, the elements that the row's own indices name: result[..., j] = x[..., indices[..., j]].
//
//   x: float32, int32 or int64, [..., n]; indices: int32 or int64, [..., k], equal to x on all axes but the
//   last; result: [..., k].
// Throws InvalidArgument from its shape rule, and while a plan runs for an index outside [0, n).
// Gradient: for x, scatter_along_last_axis; none for indices.
Tensor take_along_last_axis(const Tensor& x, const Tensor& indices,
                            SourceLocation where = SourceLocation::current());

// The reverse of take_along_last_axis: into rows of zeros, each element is added where its index says:
// result[..., indices[..., j]] += x[..., j], in the order of j.
//
//   x: float32, int32 or int64, [..., k]; indices: int32 or int64, of x's shape; length >= 0; result: [...,
//   length].
// Throws InvalidArgument from its shape rule, and while a plan runs for an index outside [0, length).
// Gradient: for x, take_along_last_axis; none for indices.
Tensor scatter_along_last_axis(const Tensor& x, const Tensor& indices, int64_t length,
                               SourceLocation where = SourceLocation::current());

// A new last axis of extent `depth` that holds 1 at the position each index names, and 0 elsewhere.
//
//   indices: int32 or int64, any shape; depth >= 0; dtype: any but bfloat16; result: [shape of indices...,
//   depth].
// Throws InvalidArgument from its shape rule, and while a plan runs for an index outside [0,
// depth). No gradient.
Tensor one_hot(const Tensor& indices, int64_t depth, DType dtype = DType::kFloat32,
               SourceLocation where = SourceLocation::current());

// The position of the largest element along `axis`; of several equal ones, the first. NaN counts as larger
// than any number, as in NumPy, so that it does not stay hidden.
//
//   x: float32, int32, int64 or uint8, extent >= 1 on the axis; axis in [-rank, rank); result: int64, x's
//   shape without the axis.
// Throws InvalidArgument otherwise. No gradient.
Tensor argmax(const Tensor& x, int64_t axis = -1, SourceLocation where = SourceLocation::current());

struct TopK {
  Tensor values;   // [..., k], of x's dtype, the largest first
  Tensor indices;  // [..., k], int32: where in the last axis each value is
};

// The k largest elements of each row. Of equal elements the one with the lower index comes first; NaN counts
// as larger than any number.
//
//   x: float32, int32 or int64, [..., n] with n < 2^31; 0 <= k <= n.
// Throws InvalidArgument otherwise.
// Gradient: for x, the gradients of the values at their indices, zeros elsewhere (scatter_along_last_axis).
TopK top_k(const Tensor& x, int64_t k, SourceLocation where = SourceLocation::current());

}  // namespace mox
