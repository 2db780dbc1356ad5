// The largest of many errors, in which one that is no number is not lost.
#pragma once

#include <cmath>

namespace mox::test {

// The larger of two; NaN if one of them is. std::max(error, NaN) is `error`: a test that looks for the
// largest error that way calls results that are no numbers right.
inline double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

}  // namespace mox::test
