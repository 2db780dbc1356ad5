// Reading a zip archive that is held in memory (PKWARE's APPNOTE.TXT, 4.3): stored and deflated members.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

// Calls `each` for the members that are `wanted` by their names, in the directory's order and one at a time;
// `content` is valid during the call. What is not wanted is not unpacked, and may be anything. Throws
// DataError.
void read_zip(std::span<const std::byte> archive, const std::string& path,
              FunctionRef<bool(const std::string& name)> wanted,
              FunctionRef<void(const std::string& name, std::span<const std::byte> content)> each);

}  // namespace mox::data::internal
