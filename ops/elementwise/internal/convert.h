// Between the dtypes of tensors and the number type that a program computes with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tensor/dtype.h"

namespace mox::elementwise {

// Numbers of `dtype` become Registers (float, int32_t or int64_t); true is 1.
template <typename Register>
void load_elements(const std::byte* from, DType dtype, int64_t count, Register* to);

// Registers become numbers of `dtype`. A float that an integer cannot hold becomes the nearest that it can,
// NaN becomes 0, fractions are cut off; integers keep their low bits; bool is "not 0".
template <typename Register>
void store_elements(const Register* from, DType dtype, int64_t count, std::byte* to);

}  // namespace mox::elementwise
