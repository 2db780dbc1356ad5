// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mox {

enum class DType : uint8_t { kFloat32, kBFloat16, kInt32, kInt64, kUInt8, kBool };

size_t size_of(DType dtype);              // bytes of one element
std::string_view to_string(DType dtype);  // "float32", "bfloat16", "int32", "int64", "uint8", "bool"
bool is_floating(DType dtype);            // float32 and bfloat16

// The dtype of that name; throws InvalidArgument for another name.
DType dtype_from_string(std::string_view name);

// The storage of one bfloat16: the upper half of a float32. Rounds to nearest even; NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
};

// The DType of a C++ type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUInt8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace mox
