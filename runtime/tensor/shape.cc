#include "runtime/tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace mox {
namespace {
void validate(const std::vector<int64_t>& dims) {
  __int128 elements = 1;
  for (int64_t dim : dims) {
    if (dim < 0)
      throw InvalidArgument(fmt::format("a shape needs extents >= 0, got [{}]", fmt::join(dims, ", ")));
    if (dim > 0) elements *= dim;
    if (elements > Shape::kMostElements)
      throw InvalidArgument(fmt::format("the shape [{}] has more than 2^56 elements", fmt::join(dims, ", ")));
  }
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) : dims_(dims) { validate(dims_); }
Shape::Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) { validate(dims_); }

int64_t Shape::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  return count;
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> strides(dims_.size());
  int64_t step = 1;
  for (size_t i = dims_.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(dims_[i], 1);
  }
  return strides;
}

int Shape::normalized_axis(int64_t axis) const {
  if (axis < -rank() || axis >= rank())
    throw InvalidArgument(
        fmt::format("axis {} is outside [-{}, {}) for shape {}", axis, rank(), rank(), to_string(*this)));
  return axis < 0 ? axis + rank() : axis;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), ", ")); }

bool broadcast_shapes(const Shape& a, const Shape& b, Shape* result) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(rank);
  for (int i = 0; i < rank; ++i) {
    const int64_t da = i < rank - a.rank() ? 1 : a[i - (rank - a.rank())];
    const int64_t db = i < rank - b.rank() ? 1 : b[i - (rank - b.rank())];
    if (da != db && da != 1 && db != 1) return false;
    dims[i] = da == 1 ? db : da;
  }
  *result = Shape(std::move(dims));
  return true;
}

}  // namespace mox
