// Reverse-mode differentiation: builds the gradient of a scalar as more nodes of the same graph.
//
// The driver knows no op: each op's gradient function builds its part out of public ops, and the two ops that
// the driver itself needs are handed in. See Griewank & Walther, "Evaluating Derivatives" (2008), chapter 3.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox {

struct AutodiffVocabulary {
  std::function<Tensor(const Tensor& a, const Tensor& b)> add;  // a + b, of one type
  std::function<Tensor(const Tensor& like)> ones_like;          // the seed: 1 for the loss
};

// d(loss)/d(w) for every w in `targets`; undefined where the loss does not depend on it, or only through ops
// that let none flow (no_gradient). `loss` is a scalar of a floating dtype and every target a tensor of its
// graph; InvalidArgument otherwise, if an op between them has no gradient function, or if one does not answer
// with one tensor of the right type for each input. Only nodes between `targets` and `loss` get gradient
// nodes. New nodes are named under "gradients/" and carry their forward node's source location.
std::vector<Tensor> build_gradients(const Tensor& loss, std::span<const Tensor> targets,
                                    const AutodiffVocabulary& vocabulary);

}  // namespace mox
