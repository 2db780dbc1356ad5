// Moves the elements of a tensor so that its axes come in another order.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/team.h"
#include "runtime/tensor/shape.h"

namespace mox::internal {

class Permute {
 public:
  // Axis i of the target is axis permutation[i] of the source.
  Permute(const Shape& source, const std::vector<int>& permutation, size_t element_bytes);

  // The elements stay in their order (only axes of extent 1 move, or the tensor is empty).
  bool moves_nothing() const { return axes_.size() <= 1; }
  void run(const std::byte* source, std::byte* target, const Team& team) const;

 private:
  struct Axis {
    int64_t extent, source_stride, target_stride;  // strides in elements
  };
  template <typename T>
  void run_tiled(const T* source, T* target, const Team& team) const;
  void run_rows(const std::byte* source, std::byte* target, const Team& team) const;

  std::vector<Axis> axes_;  // in the target's order, neighbours joined, no extent of 1
  size_t source_last_ = 0;  // position in axes_ of the one with source stride 1
  size_t element_bytes_;
};

}  // namespace mox::internal
