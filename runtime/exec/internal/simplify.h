// Rewrites that need no knowledge of any op.
#pragma once

#include "runtime/exec/plan.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// A node whose inputs are all constants becomes a constant (computed now, on one thread).
RewriteRule fold_constants(const CompileOptions& options);
// Whether it is such a node, without which nothing is folded.
bool is_of_constants(const Node& node);

// A node equal to an earlier one (op, inputs, attributes) is replaced by it. Random nodes never are.
RewriteRule share_equal_nodes();

}  // namespace mox
