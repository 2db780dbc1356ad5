// Gradient clipping by the global norm, with sums that do not depend on the number of threads.
//
// Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (ICML 2013).
#pragma once

#include <span>

#include "runtime/base/team.h"

namespace mox {

// The sum of squares of one gradient, in double precision. Cut by the number of elements alone and combined
// in a fixed balanced tree: the same bits for any team. No allocation. NaN or infinite elements give
// NaN or infinity.
double sum_of_squares(std::span<const float> gradient, const Team& team);

// sqrt of the sum of `sums_of_squares` (one a variable, in the order of the variables), combined in a
// balanced tree.
double global_norm(std::span<const double> sums_of_squares);

// What to multiply all gradients by so that their global norm is at most `limit` > 0: 1 if it is already,
// limit / norm otherwise. NaN for a norm that is not finite, so that every variable shows it and the NaN
// guard reports it. (For gradients with a loss scale, pass the norm divided by the scale.)
double clipping_scale(double norm, double limit);

}  // namespace mox
