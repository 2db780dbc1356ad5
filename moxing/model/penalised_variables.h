// Which variables of a model the loss decays: those that get_variable has made with a regularizer other than
// l1_regularizer, which is another thing than the weight decay of an optimizer.
#pragma once

namespace mox::internal {

// The collection of a graph that has them.
inline constexpr const char* kPenalisedVariables = "mox/penalised_variables";

}  // namespace mox::internal
