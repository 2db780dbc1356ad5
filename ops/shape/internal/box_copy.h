// Copies a box of elements from one row-major tensor into another: what slice, pad, concat and split
// are made of.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/team.h"
#include "runtime/tensor/shape.h"

namespace mox::internal {

class BoxCopy {
 public:
  // Of `extents` elements along each axis, from `source_begin` of a tensor of shape `source` to
  // `target_begin` of one of shape `target`. All have the same rank and the box lies inside of both.
  BoxCopy(const std::vector<int64_t>& extents, const Shape& source, const std::vector<int64_t>& source_begin,
          const Shape& target, const std::vector<int64_t>& target_begin, size_t element_bytes);

  void run(const std::byte* source, std::byte* target, const Team& team) const;

 private:
  struct Axis {
    int64_t extent, source_stride, target_stride;  // strides in bytes
  };
  std::vector<Axis> outer_;  // all but the innermost of the axes that are not one run of bytes
  Axis row_{1, 0, 0};        // the innermost of them
  int64_t rows_ = 1;         // product of the outer extents
  int64_t run_bytes_ = 0;    // contiguous on both sides
  int64_t source_offset_ = 0, target_offset_ = 0;
};

}  // namespace mox::internal
