// Percent encoding (RFC 3986) as signatures need it: every byte but letters, digits and "-._~" as %XX in
// upper case.
#pragma once

#include <string>
#include <string_view>

namespace mox::file::s3 {

std::string percent_encode(std::string_view bytes, bool keep_slashes = false);

// "+" is a space, as in the names of listings. What is no %XX stays as it is.
std::string percent_decode(std::string_view text);

}  // namespace mox::file::s3
