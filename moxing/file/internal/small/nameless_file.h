// Content that is whole and in memory, on its way to a new file: the file has no name until all of it is
// there, and then its own at once.
#pragma once

#include <string>
#include <string_view>

namespace mox::file::internal {

// False, and nothing has been done, if the name is taken, or its directory is missing, or the file system has
// no files without a name. Throws IoError.
bool write_nameless(const std::string& path, std::string_view content);

}  // namespace mox::file::internal
