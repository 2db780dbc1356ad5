// How the text of a configuration file is encoded.
#pragma once

#include <string>

namespace mox::internal {

// `bytes` as UTF-8 without a byte order mark: of UTF-8 and of UTF-16 of either byte order, told by its mark
// or by the zero bytes that its first letters have (what Windows calls Unicode, and PowerShell writes).
// Throws ConfigError, which begins with `path` and names the encoding, for UTF-32, for bytes that are no
// UTF-16, and for zero bytes in UTF-8.
std::string as_utf8(const std::string& bytes, const std::string& path);

}  // namespace mox::internal
