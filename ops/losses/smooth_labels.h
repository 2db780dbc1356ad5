#pragma once

#include "runtime/graph/tensor.h"

namespace mox {

// Label smoothing: labels * (1 - smoothing) + smoothing / classes.
//
//   labels: float32 [..., classes], classes >= 1; smoothing in [0, 1); the result has the labels' type.
// Throws InvalidArgument otherwise. Gradient: for labels, g * (1 - smoothing).
// Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (CVPR 2016), section 7.
Tensor smooth_labels(const Tensor& labels, double smoothing,
                     SourceLocation where = SourceLocation::current());

}  // namespace mox
