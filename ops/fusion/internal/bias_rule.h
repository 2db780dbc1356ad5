// The rewrite rule that lets a convolution or matrix product add its bias while the result is still in
// registers: one pass over memory less.
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// conv2d or matmul, then bias_add (or, for a matmul, add of a vector along the last axis): one node with the
// bias as third input. Only where nothing else uses the sum without the bias.
//
// relu stays a node of its own: oneDNN's relu turns NaN into zero, and a training run that has diverged would
// look sound.
NamedRule bias_rule();

}  // namespace mox
