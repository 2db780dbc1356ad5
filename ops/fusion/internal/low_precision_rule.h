// The rewrite rule behind `precision: bf16` and var_scope's force_dtype: what is dense arithmetic takes and
// gives bfloat16, everything else float32.
#pragma once

#include "ops/fusion/default_rules.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// Convolutions (not the transposed ones) and their gradients, and matrix products take their inputs rounded
// to bfloat16 and accumulate in float32. But the gradient of a filter whose stride is larger than the image
// is wide, or whose padding is larger than the image is high, stays in float32. Convolutions and gradients of
// images give bfloat16; gradients of filters and matrix products give float32. Batch normalisation of what a
// convolution gave stays in bfloat16 and keeps its statistics in float32; so does max pooling, whose gradient
// is summed in float32 and then rounded; elementwise ops whose operands of full shape are all bfloat16
// compute in float32 and give bfloat16. Variables, their gradients, losses and everything else are float32.
// Comes after the rules that fuse, and before elementwise_chain_rule, which takes the remaining casts into
// its chains. Micikevicius et al., "Mixed Precision Training" (ICLR 2018); Kalamkar et al., "A Study of
// BFLOAT16 for Deep Learning Training" (2019). `precision`: of nodes without a NodeTraits::compute_dtype.
NamedRule low_precision_rule(Precision precision);

}  // namespace mox
