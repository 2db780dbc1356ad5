// CRC-32C with the processor's own instruction, which every x86-64-v3 machine (the least we build for) has.
#include <immintrin.h>

#include <bit>
#include <cstring>

#include "moxing/formats/tfrecord.h"

namespace mox::data {

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous) {
  uint64_t crc = ~previous;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  uint32_t narrow = crc;
  for (; left > 0; --left, ++at) narrow = _mm_crc32_u8(narrow, std::to_integer<uint8_t>(*at));
  return ~narrow;
}

uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

}  // namespace mox::data
