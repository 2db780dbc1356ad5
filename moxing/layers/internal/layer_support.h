// What the layers share.
#pragma once

#include <string>
#include <string_view>

#include "moxing/layers/layers.h"

namespace mox::layers::internal {

// The scope of a layer's variables: the given name, or the kind's with the first number that is free.
std::string scope_name(const std::string& given, std::string_view kind);

// x as float32, if it is a float32 or bfloat16 tensor of that rank. With `precision: bf16`, convolutions and
// matrix products take a bfloat16 one as it is (ops/fusion/internal/low_precision_rule.h): no cast is left.
// Throws InvalidArgument, naming the layer and the caller's line; so does the next one.
Tensor float32_of_rank(const Tensor& x, int rank, std::string_view layer, SourceLocation where);
void require_positive(int64_t value, std::string_view what, std::string_view layer, SourceLocation where);

Tensor activated(const Tensor& y, const Activation& activation, SourceLocation where);

// y plus the variable "bias", one value a channel (axis 1), if `use_bias`.
Tensor biased(const Tensor& y, bool use_bias, int64_t channels, const Initializer& initializer,
              SourceLocation where);

}  // namespace mox::layers::internal
