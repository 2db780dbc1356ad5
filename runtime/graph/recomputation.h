// Activation checkpointing: values of a stretch of the graph are computed again for its gradients instead of
// kept for them.
//
// A stretch is all nodes with one NodeTraits::recomputed_stretch. Where a gradient node of the stretch reads
// a value that one of its other nodes has made, the rule puts a copy of that node, and of what it reads in
// the stretch, right before the reader; so the first value is dead once the forward pass has left the
// stretch. Not copied are values that something outside of the stretch reads (they are there anyway), small
// ones, and those of random nodes, whose numbers belong to the node. A copy computes the same bits as long as
// later rules make the same of it: one that joins nodes may find other neighbours here.
//
// Chen et al., "Training Deep Nets with Sublinear Memory Cost" (arXiv:1604.06174), section 4.
#pragma once

#include <cstddef>

#include "runtime/graph/rewrite.h"

namespace mox {

// Values up to this size are kept: statistics of normalisations, losses.
inline constexpr size_t kSmallestRecomputedBytes = 1 << 16;

// To be applied once to a graph with its gradients, after the fusions that look at forward and
// backward nodes together.
NamedRule recomputation_rule();

}  // namespace mox
