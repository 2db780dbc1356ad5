#include "ops/shape/internal/fill_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/tensor/float32_range.h"

namespace mox::internal {
namespace {

constexpr int64_t kElementsPerThread = 1 << 15;

// The values of an integer dtype: [low, high). An upper bound that is a power of two is exact as a double.
struct Range {
  double low, high;
};
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::kInt32:
      return {-0x1p31, 0x1p31};
    case DType::kInt64:
      return {-0x1p63, 0x1p63};
    case DType::kUInt8:
      return {0, 256};
    default:
      return {0, 2};
  }
}

template <typename T>
void fill_elements(std::byte* target, size_t bytes, const std::byte* pattern, const Team& team) {
  T value;
  std::memcpy(&value, pattern, sizeof(T));
  T* elements = reinterpret_cast<T*>(target);
  team.parallel_for(static_cast<int64_t>(bytes / sizeof(T)), kElementsPerThread,
                    [&](int64_t begin, int64_t end) { std::fill(elements + begin, elements + end, value); });
}

}  // namespace

void require_representable(const OpCall& call, DType dtype, double value) {
  if (is_floating(dtype)) {
    if (overflows_float32(value)) call.fail(fmt::format("a value of {}, not {}", to_string(dtype), value));
    return;
  }
  const Range range = range_of(dtype);
  if (!(value >= range.low && value < range.high && value == std::floor(value)))
    call.fail(fmt::format("a value of {}, not {}", to_string(dtype), value));
}

FillValue::FillValue(const TensorType& type, double value)
    : bytes_(type.bytes()), element_bytes_(size_of(type.dtype)) {
  const auto store = [this](auto typed) { std::memcpy(pattern_.data(), &typed, sizeof typed); };
  switch (type.dtype) {
    case DType::kFloat32:
      store(static_cast<float>(value));
      break;
    case DType::kBFloat16:
      store(BFloat16(static_cast<float>(value)));
      break;
    case DType::kInt32:
      store(static_cast<int32_t>(value));
      break;
    case DType::kInt64:
      store(static_cast<int64_t>(value));
      break;
    case DType::kUInt8:
      store(static_cast<uint8_t>(value));
      break;
    case DType::kBool:
      store(value != 0);
      break;
  }
}

void FillValue::run(std::byte* target, const Team& team) const {
  switch (element_bytes_) {
    case 1:
      return fill_elements<uint8_t>(target, bytes_, pattern_.data(), team);
    case 2:
      return fill_elements<uint16_t>(target, bytes_, pattern_.data(), team);
    case 4:
      return fill_elements<uint32_t>(target, bytes_, pattern_.data(), team);
    default:
      return fill_elements<uint64_t>(target, bytes_, pattern_.data(), team);
  }
}

}  // namespace mox::internal
