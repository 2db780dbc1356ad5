// Reading a zip archive (PKWARE's APPNOTE.TXT, 4.3), of which no more is in memory than is being read: stored
// and deflated members, of 4 GiB and more as well (zip64).
#pragma once

#include <string>

#include "moxing/formats/internal/byte_source.h"
#include "runtime/base/function_ref.h"

namespace mox::data::internal {

// Calls `each` for the members that are `wanted` by their names, in the directory's order and one at a time;
// `content` is valid during the call, and unpacked as far as it is read. The checksum of what was read to its
// end is compared after the call. What is not wanted is not read, and may be anything. Throws DataError.
void read_zip(const ByteSource& archive, const std::string& path,
              FunctionRef<bool(const std::string& name)> wanted,
              FunctionRef<void(const std::string& name, ByteStream& content)> each);

}  // namespace mox::data::internal
