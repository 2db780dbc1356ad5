// The rewrite rules that let batch normalisation compute what follows it while the values are in registers.
#pragma once

#include "ops/fusion/default_rules.h"
#include "runtime/graph/rewrite.h"

namespace mox {

// batch_norm of an image, then relu; or add, then relu; or clip_by_value: one node, in one pass over memory.
// Where the other operand of the addition is made after the normalisation, nothing is fused.
NamedRule batch_norm_activation_rule();

// The gradient of such a node: the choice by the activation's sign, the sum of two gradients that arrive at
// the activation and batch_norm_gradient become one node, which also gives the chosen gradient to whoever
// else wants it (the shortcut of a residual unit). Comes after batch_norm_activation_rule.
NamedRule batch_norm_gradient_rule();

// What such a node without a residual gave to a convolution is computed once more for the gradient of the
// convolution's filter, from the input, which is kept for the node's own gradient anyway. So its memory is
// free between the forward and the backward pass, for one more pass over the image. Only where nothing else
// needs the value. Comes after the other two. Always for convolutions of a recomputed stretch
// (runtime/graph/recomputation.h); for others as `where` says. There kCheap means those that make at least
// kCheapOperations for each value of the image, in float32, if that frees kWorthwhileBytes in all the graph:
// `precision` is that of convolutions whose scope says nothing.
NamedRule batch_norm_recomputation_rule(RecomputedNormalisations where, Precision precision);

// Per value of the image, in one of a convolution's three sums: bounds what making a value again costs to
// some percent of the three (docs/design_notes.md). Below it is a window of 3 x 3 over 16 channels, as in the
// first stage of resnet_v1_20 (docs/benchmarks_training.md: what that would free).
inline constexpr double kCheapOperations = 512;

// Small networks are left alone: what they would gain nobody lacks. resnet_v1_20 is one,
// resnet_v1_18 is none (docs/benchmarks_training.md).
inline constexpr size_t kWorthwhileBytes = size_t{32} << 20;

// The result of a convolution that only a normalisation without activation reads, as in the projection
// shortcuts of a ResNet, is computed once more for the normalisation's gradient. Only unless `where` is
// kNone, where the convolution makes at most kCheapConvolutionOperations for each value of its result, in
// float32 and one group, and its image is kept anyway. Comes after batch_norm_recomputation_rule.
NamedRule shortcut_recomputation_rule(RecomputedNormalisations where, Precision precision);

// A window of 1 x 1 over 64 channels, as in the shortcut of resnet_v1_50's first stage
// (docs/benchmarks_training.md: what that frees).
inline constexpr double kCheapConvolutionOperations = 128;

}  // namespace mox
