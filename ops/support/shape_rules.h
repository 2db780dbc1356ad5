// Checks that the shape rules of several ops share.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/op.h"

namespace mox::internal {

// The axis counted from the front; fails the call if `axis` is outside [-rank, rank).
int checked_axis(const OpCall& call, int64_t axis, int rank);

// The axes counted from the front and sorted; fails the call if one is outside [-rank, rank) or named twice.
std::vector<int> checked_axes(const OpCall& call, const std::vector<int64_t>& axes, int rank);

// Fails the call unless input `i` is int32 or int64. `what` names it in the message ("labels").
void require_indices(const OpCall& call, int i, std::string_view what);

// Fails the call unless input `i` is float32.
void require_float32(const OpCall& call, int i, std::string_view what);

// Throws InvalidArgument unless `x` is a tensor: for functions that look at a type before they make a node.
void require_defined(const Tensor& x, std::string_view op, SourceLocation where);

inline std::vector<int64_t> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace mox::internal
