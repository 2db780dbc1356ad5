// A conversion between two layouts, element by element.
#pragma once

#include "runtime/graph/kernel.h"

namespace mox {

// The kernel that brings a value of `type` from `from` to `to`, neither of them opaque: every bit of every
// element comes through, and padding is zero. For what nothing else moves as it should; a good deal slower
// than oneDNN's reorder. Keeps no state; uses its team.
Kernel element_conversion_kernel(const TensorType& type, const Layout& from, const Layout& to);

}  // namespace mox
