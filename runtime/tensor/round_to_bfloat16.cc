#include "runtime/tensor/round_to_bfloat16.h"

#include <bit>

namespace mox {
namespace {

// BFloat16's constructor without a branch, so that a loop over it becomes vector code.
uint16_t rounded_bits(float value) {
  constexpr uint32_t kWithoutSign = 0x7fffffff, kInfinity = 0x7f800000, kQuiet = 0x40;
  const uint32_t raw = std::bit_cast<uint32_t>(value), upper = raw >> 16;
  const uint32_t nearest = (raw + 0x7fff + (upper & 1)) >> 16;
  return static_cast<uint16_t>((raw & kWithoutSign) > kInfinity ? upper | kQuiet : nearest);
}

}  // namespace

void round_to_bfloat16(std::span<const float> from, BFloat16* to) {
  for (size_t i = 0; i < from.size(); ++i) to[i].bits = rounded_bits(from[i]);
}

}  // namespace mox
