// A JSON list of many small values, read one after the other: the values of a whole text take far more memory
// than the text.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace mox {

// Calls `take` with the text of each element, in order, and returns how many there are. Throws DataError for
// what is no list; what is wrong within an element is found out by who parses it.
size_t for_each_element(std::string_view list, FunctionRef<void(std::string_view element)> take);

}  // namespace mox
