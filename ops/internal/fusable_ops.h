// The ops that other ops and fusion rules look for in a graph. Each is defined in the file of its op.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

const Op& add_op();
const Op& bias_add_op();
const Op& conv2d_op();
const Op& matmul_op();
const Op& relu_op();

}  // namespace mox
