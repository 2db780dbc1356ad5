#include "ops/elementwise/internal/convert.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/base/error.h"

namespace mox::elementwise {
namespace {

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return BFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (value != value) return 0;
    // The largest To may not be a float; its successor, a power of two, is.
    constexpr float kBeyond = (uint64_t{1} << (Limits::digits - 1)) * 2.0f;
    if (value >= kBeyond) return Limits::max();
    if (value <= static_cast<float>(Limits::min())) return Limits::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// The bits of a float to those of the nearest bfloat16, as the class does, in a form that is vectorised.
inline uint16_t rounded_to_bfloat16(uint32_t bits) {
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>((is_nan ? bits | 0x400000 : rounded) >> 16);
}

template <typename To, typename From>
void convert_all(const void* from, int64_t count, void* to) {
  // Not memcpy: an in-place kernel stores a register that may be the output's own memory.
  if constexpr (std::is_same_v<To, From>) {
    std::memmove(to, from, count * sizeof(To));
  } else if constexpr (std::is_same_v<From, BFloat16> && std::is_same_v<To, float>) {
    const From* source = static_cast<const From*>(from);
    To* target = static_cast<To*>(to);
    for (int64_t i = 0; i < count; ++i) target[i] = std::bit_cast<float>(uint32_t{source[i].bits} << 16);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BFloat16>) {
    const From* source = static_cast<const From*>(from);
    To* target = static_cast<To*>(to);
    for (int64_t i = 0; i < count; ++i)
      target[i].bits = rounded_to_bfloat16(std::bit_cast<uint32_t>(source[i]));
  } else {
    const From* source = static_cast<const From*>(from);
    To* target = static_cast<To*>(to);
    for (int64_t i = 0; i < count; ++i) target[i] = convert<To>(source[i]);
  }
}

// f(T{}) with the C++ type of `dtype`.
template <typename Function>
void with_type(DType dtype, Function f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kBFloat16:
      return f(BFloat16{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kBool:
      return f(bool{});
  }
  MOX_ASSERT(false, "a known dtype");
}

}  // namespace

template <typename Register>
void load_elements(const std::byte* from, DType dtype, int64_t count, Register* to) {
  with_type(dtype, [&](auto element) { convert_all<Register, decltype(element)>(from, count, to); });
}

template <typename Register>
void store_elements(const Register* from, DType dtype, int64_t count, std::byte* to) {
  with_type(dtype, [&](auto element) { convert_all<decltype(element), Register>(from, count, to); });
}

template void load_elements(const std::byte*, DType, int64_t, float*);
template void load_elements(const std::byte*, DType, int64_t, int32_t*);
template void load_elements(const std::byte*, DType, int64_t, int64_t*);
template void store_elements(const float*, DType, int64_t, std::byte*);
template void store_elements(const int32_t*, DType, int64_t, std::byte*);
template void store_elements(const int64_t*, DType, int64_t, std::byte*);

}  // namespace mox::elementwise
