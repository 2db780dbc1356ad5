#include "moxing/prediction/internal/text_numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace mox::internal {
namespace {

std::string text_of_float(float value, const char* not_finite) {
  if (!std::isfinite(value) && not_finite) return not_finite;
  if (std::isnan(value)) return "nan";  // whatever its sign
  return fmt::format("{}", value);
}

}  // namespace

std::string number_text(const Array& array, size_t index, const char* not_finite) {
  switch (array.dtype()) {
    case DType::kFloat32:
      return text_of_float(array.values<float>()[index], not_finite);
    case DType::kBFloat16:
      return text_of_float(static_cast<float>(array.values<BFloat16>()[index]), not_finite);
    case DType::kInt32:
      return std::to_string(array.values<int32_t>()[index]);
    case DType::kInt64:
      return std::to_string(array.values<int64_t>()[index]);
    case DType::kUInt8:
      return std::to_string(array.values<uint8_t>()[index]);
    case DType::kBool:
      break;
  }
  return array.values<bool>()[index] ? "1" : "0";
}

}  // namespace mox::internal
