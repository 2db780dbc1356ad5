// The rewrite rule that lets a convolution do the work of the normalisation by moving averages
// that follows it.
#pragma once

#include "runtime/graph/rewrite.h"

namespace mox {

// conv2d (or conv2d_bias), then batch_norm_inference: a convolution with bias whose filters are scaled. The
// filters are scaled anew in every run, as the variables may have changed; so only where there are fewer of
// them than pixels of the result, and where nothing else uses what the convolution gives. Comes after
// bias_rule.
NamedRule batch_norm_folding_rule();

}  // namespace mox
