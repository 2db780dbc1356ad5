// Numbers of arrays as text.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/tensor/array.h"

namespace mox::internal {

// Element `index` in the shortest form that reads back the same, in any locale; `not_finite` stands for NaN
// and infinities unless it is null, which leaves them nan, inf and -inf.
std::string number_text(const Array& array, size_t index, const char* not_finite);

}  // namespace mox::internal
