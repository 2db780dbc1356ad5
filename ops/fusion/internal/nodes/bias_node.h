// Products that add a bias while the result is still in registers. They exist only in a compiled graph, after
// the gradients are built, as all nodes of this folder: they need none of their own.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// ConvolutionInputs, with the bias, a number for each channel; output and attributes as conv2d's.
const Op& conv2d_bias_op();

// MatmulInputs, with the bias, [columns]; output and attributes as matmul's.
const Op& matmul_bias_op();

}  // namespace mox
