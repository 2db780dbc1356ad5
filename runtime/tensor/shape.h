// The extents of a tensor, outermost dimension first. Dimensions are >= 0; a rank-0 shape is a
// scalar (one element).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace mox {

class Shape {
 public:
  static constexpr int64_t kMostElements = int64_t{1} << 56;

  Shape() = default;
  // Throws InvalidArgument for a negative extent or for more than kMostElements elements, an extent of 0
  // counted as 1: so a size in bytes fits 63 bits, the padding of any memory layout included.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::vector<int64_t> dims);

  int rank() const { return dims_.size(); }
  int64_t operator[](int axis) const { return dims_[axis]; }
  std::span<const int64_t> dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  int64_t elements() const;              // product of the extents; 1 for a scalar
  std::vector<int64_t> strides() const;  // row-major, in elements
  bool operator==(const Shape&) const = default;

  // The axis counted from the front for `axis` in [-rank, rank); throws InvalidArgument outside.
  int normalized_axis(int64_t axis) const;

 private:
  std::vector<int64_t> dims_;
};

std::string to_string(const Shape& shape);  // "[32, 784]"; "[]" for a scalar

// The shape that two operands broadcast to under NumPy's rule (aligned at the last axis; extents equal or 1).
// Returns false if there is none.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape* result);

}  // namespace mox
