// CRC-32C (Castagnoli), as TFRecord files and object stores have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mox {

// Pass the previous value to continue.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace mox
