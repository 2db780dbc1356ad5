// What the ops contribute to compilation: fusion rules and the conversion between layouts.
#pragma once

#include <vector>

#include "runtime/graph/kernel.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// Every fusion, in the order in which they should be applied: first the patterns around convolutions and
// matrix products, then chains of elementwise ops.
std::vector<NamedRule> default_rules();

// Converts between any two layouts that are not opaque (oneDNN's reorder).
Kernel convert_layout(const TensorType& type, const Layout& from, const Layout& to, const Team& team);

}  // namespace mox
