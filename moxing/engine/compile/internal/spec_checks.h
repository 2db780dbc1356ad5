// What a model function's answer must hold to be used in a mode.
#pragma once

#include <vector>

#include "moxing/model/model_spec.h"

namespace mox::internal {

// `signature`: the types of the batch's components. Throws InvalidArgument, naming the field.
void check_spec(const ModelSpec& spec, ModeKeys mode, const std::vector<TensorType>& signature);

}  // namespace mox::internal
