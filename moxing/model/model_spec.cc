#include "moxing/model/model_spec.h"

#include <fmt/format.h>

#include <string_view>

#include "runtime/base/error.h"

namespace mox {
namespace {

std::string types_of(const std::vector<Tensor>& components) {
  std::string types;
  for (const Tensor& tensor : components) types += (types.empty() ? "" : ", ") + to_string(tensor.type());
  return types;
}

// What is asked for by operator[] has the place of that, which is nobody's line.
std::string place_of(SourceLocation where) {
  const bool is_of_operator = std::string_view(where.file_name()).ends_with("moxing/model/model_spec.h");
  return is_of_operator ? "" : " at " + to_string(where);
}

constexpr const char* kAdvice =
    "Where a mode has no labels (PREDICT), model_fn returns before it asks for them";

}  // namespace

const Tensor& Inputs::at(size_t index, SourceLocation where) const {
  if (index >= components_.size())
    throw InvalidArgument(fmt::format(
        "component {} of the batch was asked for{}, and they are counted from 0: it has {}, {}. {}", index,
        place_of(where), components_.size(), types_of(components_), kAdvice));
  return components_[index];
}

void Inputs::require_count(size_t count, SourceLocation where) const {
  if (components_.size() == count) return;
  throw InvalidArgument(fmt::format("take<{}>() at {}: the data set of input_fn has {} component(s): {}{}{}",
                                    count, to_string(where), components_.size(), types_of(components_),
                                    components_.size() < count ? ". " : "",
                                    components_.size() < count ? kAdvice : ""));
}

}  // namespace mox
