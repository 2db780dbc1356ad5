// Derivatives of a loss.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

// d(loss)/d(target) for every target, as more nodes of the same graph, which can be differentiated again. A
// result is undefined where the loss does not depend on the target through differentiable ops. `loss` is a
// float32 tensor of one element (InvalidArgument otherwise).
std::vector<Tensor> gradients(const Tensor& loss, std::span<const Tensor> targets);

}  // namespace mox
