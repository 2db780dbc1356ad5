// The principal components of a few long vectors: N snapshots of M weights, N in the tens, M in the millions.
//
// Through the N x N Gram matrix of the vectors less their mean (Turk and Pentland's "snapshot method", J.
// Cognitive Neuroscience 3(1), 1991): its eigenvectors U and eigenvalues are those of the covariance, and the
// components are U' X / sigma. X is read twice, a block of columns at a time, and is never in memory as a
// whole. Products are made in double: taking the root of eigenvalues halves their digits, and what is left is
// what float32 has.
//
// The sign of a component is the one that makes the entry of largest magnitude in its column of U positive:
// what scikit-learn's svd_flip does by default.
#pragma once

#include <vector>

#include "moxing/boost/basis.h"
#include "moxing/boost/snapshots.h"

namespace mox::boost {

struct PrincipalComponents {
  Basis basis;
  std::vector<double> explained_variance;  // of each component: eigenvalues / (N - 1), falling
  std::vector<double> explained_ratio;     // of the variance of all N - 1 directions
  int64_t vectors = 0;
};

// The first `components` of them; each rank gets its slice. The same bits on any number of threads and ranks,
// which call it together with equal sources.
//
// Memory: a block of N x 4,096 numbers for each worker, and the slice of the result.
//
// Throws InvalidArgument if there are fewer vectors than components; FailedPrecondition if the vectors less
// their mean span fewer directions (as many vectors as components always do); NumericError, naming the place,
// for a value that is NaN or infinite.
PrincipalComponents principal_components(const ColumnSource& source, int64_t components, Communicator& ranks,
                                         const Workers& workers, DType dtype = DType::kFloat32);

}  // namespace mox::boost
