// What the nodes of max_pool and its gradients agree on.
#pragma once

#include "ops/pooling/internal/max_pooling.h"
#include "ops/pooling/internal/pooling.h"

namespace mox {

// Whether the position in a window fits into a uint8.
inline bool has_small_window(const Attributes& attributes) {
  const auto& window = attributes.get<std::vector<int64_t>>("window");
  return window[0] <= 256 && window[1] <= 256 && window[0] * window[1] <= 256;
}
// The type of the winners for outputs of `y`.
inline TensorType winner_type(const Attributes& attributes, const Shape& y) {
  return {has_small_window(attributes) ? DType::kUInt8 : DType::kInt32, y};
}

}  // namespace mox
