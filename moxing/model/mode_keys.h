// What a run, or one call of input_fn and model_fn, is for.
#pragma once

#include <string_view>

namespace mox {

enum class ModeKeys {
  TRAIN,    // compute the loss and its gradients, update the variables
  EVAL,     // compute the loss and the metrics over the whole data set
  PREDICT,  // compute output_info and hand it to output_fn
};

std::string_view to_string(ModeKeys mode);  // "train", "eval", "predict"
// Throws InvalidArgument for another name.
ModeKeys mode_from_string(std::string_view name);

}  // namespace mox
