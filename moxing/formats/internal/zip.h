// Reading a zip archive that is held in memory (PKWARE's APPNOTE.TXT, 4.3): stored and deflated members.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mox::data::internal {

struct ZipMember {
  std::string name;
  std::vector<std::byte> content;
};

// All members, in the directory's order. Throws DataError.
std::vector<ZipMember> read_zip(std::span<const std::byte> archive, const std::string& path);

}  // namespace mox::data::internal
