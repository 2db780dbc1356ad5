#include "ops/support/require_same_type.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox {

void require_same_type(std::string_view loss, const Tensor& predictions, const Tensor& labels,
                       SourceLocation where) {
  if (predictions.defined() && labels.defined() && predictions.type() == labels.type() &&
      predictions.dtype() == DType::kFloat32)
    return;
  throw InvalidArgument(
      fmt::format("{} at {}: expected predictions and labels of one shape, float32; given ({}, {})", loss,
                  to_string(where), to_string(predictions), to_string(labels)));
}

}  // namespace mox
