#include <fmt/format.h>

#include "ops/shape/shape.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor constant(const Array& value, SourceLocation where) {
  if (!value.defined())
    throw InvalidArgument(
        fmt::format("constant at {}: the array is undefined (it has no values)", to_string(where)));
  // A copy: an Array shares its buffer, and the caller may go on writing to it.
  return current_graph("constant").constant(value.clone(), where);
}

Tensor constant(float value, SourceLocation where) { return constant(Array::scalar(value), where); }

}  // namespace mox
