#include "ops/support/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace mox::internal {

int checked_axis(const OpCall& call, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    call.fail(rank == 0 ? "an input with at least one axis"
                        : fmt::format("an axis in [-{}, {}), not {}", rank, rank, axis));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int> checked_axes(const OpCall& call, const std::vector<int64_t>& axes, int rank) {
  std::vector<int> result;
  for (int64_t axis : axes) result.push_back(checked_axis(call, axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) call.fail("every axis named once");
  return result;
}

void require_indices(const OpCall& call, int i, std::string_view what) {
  if (call.dtype(i) != DType::kInt32 && call.dtype(i) != DType::kInt64)
    call.fail(fmt::format("{} of dtype int32 or int64", what));
}

void require_float32(const OpCall& call, int i, std::string_view what) {
  if (call.dtype(i) != DType::kFloat32) call.fail(fmt::format("{} of dtype float32", what));
}

void require_defined(const Tensor& x, std::string_view op, SourceLocation where) {
  if (!x.defined())
    throw InvalidArgument(fmt::format("{} at {}: an input is an undefined tensor", op, to_string(where)));
}

}  // namespace mox::internal
