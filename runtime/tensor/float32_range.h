// Numbers that float32 has no finite value for.
#pragma once

#include <cmath>

namespace mox {

// Whether a finite number becomes infinite in float32 (and in bfloat16, whose range is the same but for a
// part in 256 of its largest numbers). NaN and the infinities stay what they are.
inline bool overflows_float32(double number) {
  return std::isfinite(number) && !(std::abs(number) < 0x1.ffffffp127);
}
// Whether a number is finite, and still is in float32.
inline bool is_finite_float32(double number) { return std::isfinite(number) && !overflows_float32(number); }

}  // namespace mox
