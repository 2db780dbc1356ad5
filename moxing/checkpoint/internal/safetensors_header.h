// The header of a safetensors file: built for writing, parsed and validated for
// reading. See moxing/checkpoint/safetensors.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/checkpoint/named_array.h"

namespace mox::internal {

inline constexpr uint64_t kLengthBytes = 8;             // the header's length in front of it
inline constexpr uint64_t kMaxHeaderBytes = 100000000;  // the bound of the reference implementation

// One tensor of the header. Offsets count from the begin of the data, behind the header.
struct TensorEntry {
  std::string name;
  TensorType type;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::optional<uint32_t> crc32;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;             // in the order of their offsets
  std::map<std::string, std::string> metadata;  // without our own keys
  bool checksummed = false;
  uint32_t crc32 = 0;  // of the header, if checksummed
};

// The eight bytes and the header for `entries` (with checksums, in the order of their data), padded so that
// the data begins at a multiple of 64. Sets `crc32` to the header's checksum. Throws InvalidArgument for text
// that is not UTF-8 and for a header that is too long.
std::string build_header(std::span<const TensorEntry> entries,
                         const std::map<std::string, std::string>& metadata, uint32_t* crc32);

// The header's length from the first bytes of a file of `file_bytes` bytes. Throws DataError if it cannot be.
uint64_t parse_header_length(std::string_view first_bytes, uint64_t file_bytes, const std::string& path);

// Parses a header and validates it against the `data_bytes` that follow it: known types, shapes that do not
// overflow, offsets that cover the data exactly once, names that occur once, the header's checksum if there
// is one. Throws DataError, with `path` in the text.
SafetensorsHeader parse_header(std::string_view header, uint64_t data_bytes, const std::string& path);

}  // namespace mox::internal
