#include "tests/models/torch_fixture.h"

#include <algorithm>
#include <cmath>

namespace mox {
namespace {

uint32_t name_hash(std::string_view name) {  // FNV-1a
  uint32_t value = 0x811C9DC5;
  for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 0x01000193;
  return value;
}

uint32_t bits(uint32_t hash, uint32_t position) {  // MurmurHash3's finaliser
  uint32_t x = position * 0x9E3779B1u + hash;
  x ^= x >> 16;
  x *= 0x85EBCA6B;
  x ^= x >> 13;
  x *= 0xC2B2AE35;
  x ^= x >> 16;
  return x;
}

}  // namespace

Array formula_uniform(std::string_view name, const Shape& shape, float low, float high) {
  Array array(DType::kFloat32, shape);
  const uint32_t hash = name_hash(name);
  uint32_t position = 0;
  for (float& value : array.values<float>()) {
    const float fraction = static_cast<float>(bits(hash, position++) >> 8) * 0x1p-24f;
    const volatile float product =
        fraction * (high - low);  // rounded before the sum, as in NumPy: never a fused operation
    value = low + product;
  }
  return array;
}

Array formula_state(std::string_view name, const Shape& shape, float lowest_offset) {
  if (shape.rank() > 1) {
    const double fan_in = static_cast<double>(shape.elements()) / static_cast<double>(shape[0]);
    const auto bound = static_cast<float>(std::sqrt(6.0 / fan_in));
    return formula_uniform(name, shape, -bound, bound);
  }
  if (name.ends_with("running_var")) return formula_uniform(name, shape, 0.5f, 1.5f);
  if (name.ends_with("weight")) return formula_uniform(name, shape, 0.125f, 0.375f);
  if (name.ends_with("running_mean")) return formula_uniform(name, shape, -0.125f, 0.125f);
  Array offsets = formula_uniform(name, shape, lowest_offset, 1);
  for (float& value : offsets.values<float>()) value += value < 0 ? -0.5f : 0.5f;
  return offsets;
}

Array formula_labels(int64_t batch, int64_t classes) {
  Array labels(DType::kInt64, {batch});
  const uint32_t hash = name_hash("labels");
  uint32_t position = 0;
  for (int64_t& label : labels.values<int64_t>())
    label = static_cast<int64_t>(bits(hash, position++) % static_cast<uint32_t>(classes));
  return labels;
}

Digest digest_of(std::string_view name, std::span<const float> values) {
  Digest digest{};
  double squares = 0;
  for (const float value : values) {
    squares += static_cast<double>(value) * value;
    digest[1] = std::max<double>(digest[1], std::abs(value));
  }
  digest[0] = std::sqrt(squares);
  const std::string prefix(name);
  for (size_t k = 0; k < kDigestProjections; ++k) {
    const uint32_t hash = name_hash(prefix + '#' + std::to_string(k));
    for (size_t i = 0; i < values.size(); ++i)
      digest[2 + k] += bits(hash, static_cast<uint32_t>(i)) >> 31 ? values[i] : -values[i];
  }
  const uint32_t hash = name_hash(prefix + "#positions");
  for (size_t k = 0; k < kDigestElements; ++k)
    digest[2 + kDigestProjections + k] = values[bits(hash, static_cast<uint32_t>(k)) % values.size()];
  return digest;
}

double digest_error(const Digest& value, const Digest& truth) {
  double error = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double scale = i == 0 || (i >= 2 && i < 2 + kDigestProjections) ? truth[0] : truth[1];
    const double relative = std::abs(value[i] - truth[i]) / scale;
    error = relative <= error ? error : relative;  // NaN is kept: it compares false
  }
  return error;
}

}  // namespace mox
