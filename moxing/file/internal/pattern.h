// The patterns of glob, for one name between two slashes.
#pragma once

#include <string_view>

namespace mox::file::internal {

// Whether the name has a character in it that is special in a pattern.
bool is_pattern(std::string_view name);

// * any text, ? any byte, [a-z] and [!a-z] a byte, \ the next byte itself. A name that begins with a dot
// matches only a pattern that does. An open "[" without a "]" means itself.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace mox::file::internal
