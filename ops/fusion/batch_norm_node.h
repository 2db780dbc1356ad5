// The nodes that fusion makes of batch normalisation and its neighbours. They exist only in a compiled graph,
// after the gradients are built: they need none of their own.
#pragma once

#include "ops/normalisation/batch_norm_loops.h"
#include "runtime/graph/op.h"

namespace mox {

// Inputs x, scale, offset[, residual]; outputs y, mean, variance. Attributes: epsilon and the activation.
const Op& batch_norm_activation_op();
// The same of inputs x, scale, offset, moments[, residual], where the moments are those of x by groups of its
// pixels, as conv2d_moments gives them.
const Op& batch_norm_activation_of_moments_op();
// Inputs x, scale, offset, mean, variance, dy[, dy_more][, y]; outputs dx, dscale, doffset[, dz].
// Attributes: epsilon, the activation, "has_dy_more", "has_y", "has_dz".
const Op& batch_norm_activation_gradient_op();

// Inputs x, scale, offset, mean, variance; output y, as batch_norm_activation gave it.
const Op& batch_norm_activation_again_op();

// Inputs x, scale, mean, variance, dz, sums, where dz is the gradient of the normalisation's result and the
// float32 sums [groups, 2, channels] are of dz and of dz * (x - mean), over groups of pixels; outputs dx,
// dscale, doffset. Attribute: epsilon.
const Op& batch_norm_gradient_of_sums_op();

Attributes batch_norm_attributes(double epsilon, const normalisation::Activation& activation);

}  // namespace mox
