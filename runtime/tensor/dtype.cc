#include "runtime/tensor/dtype.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "runtime/base/error.h"

namespace mox {
namespace {

struct Description {
  DType dtype;
  size_t size;
  std::string_view name;
};
constexpr Description kDescriptions[] = {{DType::kFloat32, 4, "float32"}, {DType::kBFloat16, 2, "bfloat16"},
                                         {DType::kInt32, 4, "int32"},     {DType::kInt64, 8, "int64"},
                                         {DType::kUInt8, 1, "uint8"},     {DType::kBool, 1, "bool"}};

}  // namespace

size_t size_of(DType dtype) { return kDescriptions[static_cast<int>(dtype)].size; }
std::string_view to_string(DType dtype) { return kDescriptions[static_cast<int>(dtype)].name; }
bool is_floating(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kBFloat16; }

DType dtype_from_string(std::string_view name) {
  for (const auto& description : kDescriptions)
    if (description.name == name) return description.dtype;
  throw InvalidArgument(
      fmt::format("unknown dtype '{}'; expected float32, bfloat16, int32, int64, uint8 or bool", name));
}

BFloat16::BFloat16(float value) {
  const uint32_t raw = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<uint16_t>(raw >> 16 | 0x40);
  } else {
    bits = static_cast<uint16_t>((raw + 0x7fff + (raw >> 16 & 1)) >> 16);
  }
}
BFloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace mox
