// Matrix products.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

struct MatmulOptions {
  bool transpose_a = false;  // use a with its last two axes exchanged
  bool transpose_b = false;  // use b with its last two axes exchanged
};

// a * b over the last two axes: [..., m, k] x [..., k, n] -> [..., m, n], after the transposes that the
// options ask for. The axes before them are a batch and broadcast as NumPy's; a missing axis counts as 1. k =
// 0 gives zeros.
//
// a, b: float32 of rank 2 or more. Gradient: da = dy * b^T, db = a^T * dy, summed over broadcast axes.
// Throws InvalidArgument for another dtype or rank, or if the inner extents or the batch axes do not fit.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {},
              SourceLocation where = SourceLocation::current());

}  // namespace mox
