// The loss that is trained: the model's, with the penalties of its regularizers.
#pragma once

#include "moxing/model/model_spec.h"
#include "runtime/graph/graph.h"

namespace mox::internal {

// spec.loss plus those of the collection "regularization_losses" that it does not hold already: a program
// that adds them itself, as is usual elsewhere, does not get them twice. That is logged. `graph` must be the
// thread's current one.
Tensor regularized_loss(const Graph& graph, const ModelSpec& spec);

}  // namespace mox::internal
