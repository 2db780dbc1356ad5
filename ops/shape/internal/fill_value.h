// Filling a buffer with one value of any dtype.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/team.h"
#include "runtime/graph/op.h"

namespace mox::internal {

// Fails the call unless `value` is exactly a value of an integer dtype or bool; floating dtypes round it, but
// not to infinity.
void require_representable(const OpCall& call, DType dtype, double value);

class FillValue {
 public:
  FillValue(const TensorType& type, double value);
  void run(std::byte* target, const Team& team) const;

 private:
  size_t bytes_;
  size_t element_bytes_;
  std::array<std::byte, 8> pattern_{};
};

}  // namespace mox::internal
