#include <fmt/format.h>

#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/base/error.h"

namespace mox {

Tensor stack(const std::vector<Tensor>& inputs, int64_t axis, SourceLocation where) {
  std::vector<Tensor> rows;
  for (const Tensor& input : inputs) {
    internal::require_defined(input, "stack", where);
    if (input.type() != inputs[0].type())
      throw InvalidArgument(fmt::format("stack at {}: expected inputs of one type; given {} and {}",
                                        to_string(where), to_string(inputs[0]), to_string(input)));
    rows.push_back(expand_dims(input, axis, where));
  }
  return concat(std::move(rows), axis, where);
}

}  // namespace mox
