// The inner loops: one instruction on one block of a register file.
#pragma once

#include <cstdint>

#include "ops/elementwise/internal/program.h"

namespace mox::elementwise {

// Blocks are computed in whole lanes of this many elements, the end of a tensor included (in padded
// registers), so that every element goes through the same vector code and its bits do not
// depend on its place.
inline constexpr int64_t kLane = 16;

// out[i] = f(a[i], b[i], c[i]) for i in [0, count); count is a multiple of kLane, `out` is aligned to 32
// bytes and may be the same memory as an operand. Operands that the opcode does not have are not read.
template <typename Register>
using BlockFunction = void (*)(Register* out, const Register* a, const Register* b, const Register* c,
                               int64_t count);

// The loop for an opcode on float, int32_t or int64_t. Integers wrap around; asserts for what integers do not
// have (div, exp, ...).
template <typename Register>
BlockFunction<Register> block_function(Opcode opcode);

// Rough cost of an instruction on one float, in units of an addition in cache.
int relative_cost(Opcode opcode);

}  // namespace mox::elementwise
