// The nodes that fusion makes of batch normalisation and its neighbours. They exist only in a compiled graph,
// after the gradients are built: they need none of their own.
#pragma once

#include "ops/normalisation/batch_norm_inputs.h"
#include "ops/normalisation/batch_norm_loops.h"
#include "runtime/graph/op.h"

namespace mox {

// ForwardInputs without moments; outputs y, mean, variance. Attributes: epsilon and the activation.
const Op& batch_norm_activation_op();
// The same with the moments of x by groups of its pixels, as conv2d_moments gives them.
const Op& batch_norm_activation_of_moments_op();
// FusedGradientInputs without sums; outputs dx, dscale, doffset[, dz]. Attributes: epsilon, the activation,
// "has_dz".
const Op& batch_norm_activation_gradient_op();

// StatisticsInputs; output y, as batch_norm_activation gave it.
const Op& batch_norm_activation_again_op();

// FusedGradientInputs x, scale, mean, variance, dy and sums, where dy is the gradient of the normalisation's
// result; outputs dx, dscale, doffset. Attribute: epsilon.
const Op& batch_norm_gradient_of_sums_op();
// In place of the batch_norm_activation_gradient `node`, from such inputs, whose dy and sums another node has
// made: its results, of which dz is dy.
std::vector<Tensor> gradients_of_sums(const Node& node,
                                      const normalisation::FusedGradientInputs<Tensor>& inputs);

// Input an image; outputs mean and variance of its channels, as batch_norm gives them.
const Op& batch_norm_statistics_op();

Attributes batch_norm_attributes(double epsilon, const normalisation::Activation& activation);
// The activation in the attributes of such a node.
normalisation::Activation activation_of(const Attributes& attributes);

}  // namespace mox
