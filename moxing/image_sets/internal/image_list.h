// A text file that names images, one a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

// The paths that the lines of `text` name, in their order; one that is not absolute counts from the directory
// of `list`, the file or URL that the text is of. Throws NotFound, naming the line, for one that `exists`
// does not know, and DataError for a text of names too short for so many files.
std::vector<std::string> parse_image_list(std::string_view text, const std::string& list,
                                          FunctionRef<bool(const std::string&)> exists);

}  // namespace mox::data::internal
