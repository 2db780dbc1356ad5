// The kernel behind gather and embedding_lookup.
#pragma once

#include <string>

#include "runtime/graph/kernel.h"

namespace mox::internal {

// Input 0 is the data, input 1 the indices into its `axis`. The words go into the message for an
// index out of range.
Kernel gather_kernel(const Node& node, int axis, std::string index_name, std::string bound_name);

}  // namespace mox::internal
