// exp and log over buffers, always in whole vectors: an element gets the same bits wherever it stands in the
// buffer, which a vector loop with a scalar tail would not give.
#pragma once

#include <cstdint>

namespace mox::internal {

inline constexpr int64_t kVectorLanes = 8;

// `count` up to a whole number of vectors: how much of a buffer these functions touch.
inline int64_t whole_vectors(int64_t count) {
  return (count + kVectorLanes - 1) / kVectorLanes * kVectorLanes;
}

// In place; `values` is aligned to 32 bytes and has room for whole_vectors(count), of which the rest gets any
// value. exp of anything below -87.4 is 0 (no denormal numbers). NaN stays NaN.
void exp_in_place(float* values, int64_t count);
void log_in_place(float* values, int64_t count);

}  // namespace mox::internal
