// What tables about tensors are kept under: the node's number, then the output's. Orders tensors as
// they were made.
#pragma once

#include <cstdint>

#include "runtime/graph/node.h"
#include "runtime/graph/tensor.h"

namespace mox {

inline int64_t tensor_key(int node, int output) { return int64_t{node} << 32 | output; }
inline int64_t key_of(const Tensor& tensor) { return tensor_key(tensor.node()->id, tensor.index()); }

}  // namespace mox
