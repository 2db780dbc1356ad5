#include "moxing/model/model_spec.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox {

const Tensor& Inputs::at(size_t index, SourceLocation where) const {
  if (index >= components_.size())
    throw InvalidArgument(
        fmt::format("component {} of the batch was asked for at {}, but the data set has {}", index,
                    to_string(where), components_.size()));
  return components_[index];
}

void Inputs::require_count(size_t count, SourceLocation where) const {
  if (components_.size() == count) return;
  std::string given;
  for (const Tensor& tensor : components_) given += (given.empty() ? "" : ", ") + to_string(tensor.type());
  throw InvalidArgument(fmt::format("take<{}>() at {}: the data set of input_fn has {} component(s): {}",
                                    count, to_string(where), components_.size(), given));
}

}  // namespace mox
