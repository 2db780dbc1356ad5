// Many numbers of float32 as bfloat16.
#pragma once

#include <span>

#include "runtime/tensor/dtype.h"

namespace mox {

// to[i] = BFloat16(from[i]), as vector code.
void round_to_bfloat16(std::span<const float> from, BFloat16* to);

}  // namespace mox
