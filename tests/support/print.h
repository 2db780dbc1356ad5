// How GoogleTest writes our types in messages and in the names of parameterised tests; without these it
// writes their bytes, which hold addresses and differ from run to run.
#pragma once

#include <ostream>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace mox {

inline void PrintTo(const Shape& shape, std::ostream* stream) { *stream << to_string(shape); }
inline void PrintTo(DType dtype, std::ostream* stream) { *stream << to_string(dtype); }

}  // namespace mox
