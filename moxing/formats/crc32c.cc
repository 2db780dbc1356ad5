#include "runtime/base/crc32c.h"

#include <bit>

#include "moxing/formats/tfrecord.h"

namespace mox::data {

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous) { return mox::crc32c(bytes, previous); }

uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

}  // namespace mox::data
