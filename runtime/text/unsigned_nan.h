// The sign of a NaN is chance (0 / 0 has one on x86), and fmt and printf would write it: -nan.
#pragma once

#include <cmath>

namespace mox {

inline double unsigned_nan(double value) { return std::isnan(value) ? std::abs(value) : value; }

}  // namespace mox
