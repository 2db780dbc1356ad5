// The rewrite rule that turns chains of elementwise ops into one.
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// Merges into an elementwise node those of its producers that are elementwise, have the same output shape and
// no other user, so that what passes between them never leaves the cache. Computes in float32; intermediate
// values are float32 or bool. A merged node has a bounded number of inputs and values.
NamedRule elementwise_chain_rule();

}  // namespace mox
