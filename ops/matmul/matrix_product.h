// The matrix product, shared by matmul and what it is fused with.
#pragma once

#include "ops/processor/onednn.h"
#include "runtime/graph/op.h"

namespace mox {

// The shape rule of a * b with the attributes "transpose_a" and "transpose_b", for inputs 0 and 1.
std::vector<TensorType> infer_matrix_product(const OpCall& call);

// The kernel of a * b (+ bias) of MatmulInputs. Empty values included.
Kernel matrix_product_kernel(const Node& node, const Team& team);

}  // namespace mox
