// The ops that other ops and fusion rules look for in a graph. Each is defined in the file of its op.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

const Op& add_op();
const Op& batch_norm_gradient_op();
const Op& batch_norm_inference_op();
const Op& batch_norm_op();
const Op& bias_add_op();
const Op& cast_op();
const Op& clip_by_value_op();
const Op& conv2d_filter_gradient_op();
const Op& conv2d_input_gradient_op();
const Op& conv2d_op();
const Op& greater_equal_op();
const Op& greater_op();
const Op& less_equal_op();
const Op& logical_and_op();
const Op& matmul_op();
const Op& max_pool_gradient_op();
const Op& max_pool_op();
const Op& relu_op();
const Op& select_op();

}  // namespace mox
