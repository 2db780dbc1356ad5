// The check of losses that compare element with element.
#pragma once

#include <string_view>

#include "runtime/graph/tensor.h"

namespace mox {

// Throws InvalidArgument, with both types, unless predictions and labels are float32 of one shape.
void require_same_type(std::string_view loss, const Tensor& predictions, const Tensor& labels,
                       SourceLocation where);

}  // namespace mox
