// Which elements go into which result of a reduction, and how the work is cut.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/tensor/shape.h"

namespace mox {

// Some axes of a row-major tensor, outermost first, walked in row-major order.
class AxisWalk {
 public:
  void add(int64_t extent, int64_t stride);
  int64_t count() const { return count_; }
  int64_t offset(int64_t index) const;  // in elements, of the index-th combination; index < count()
  bool empty() const { return extents_.empty(); }
  int64_t inner_extent() const { return extents_.back(); }

 private:
  std::vector<int64_t> extents_, strides_;
  int64_t count_ = 1;
};

// The input as results x terms x `length`: `length` elements that lie side by side are either one term's
// (then they all go into one result) or one element of each of `length` neighbouring results.
struct ReductionWalk {
  AxisWalk kept, reduced;  // without the innermost axis
  int64_t length = 1;      // of the innermost axis, neighbours merged
  bool length_is_reduced = true;
  int64_t reduced_elements = 1;  // that go into one result
  int64_t results = 1;
};

// Axes of extent 1 count for nothing; neighbours of one kind are merged.
ReductionWalk walk_reduction(const Shape& shape, const std::vector<bool>& reduced);

}  // namespace mox
