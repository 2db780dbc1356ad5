// Which of the files that a pattern matches are the shards it means.
#pragma once

#include <string>
#include <vector>

namespace mox::data::internal {

// `paths` are what glob found for `pattern`. Where the pattern ends with a star, copies (NAME.bak, NAME~ and
// the like) are left out with a warning; and where some are called NAME-00001-of-00004, so are files called
// otherwise and, for "NAME-*", shards of another name. Throws DataError for shards of different numbers and
// for missing ones.
std::vector<std::string> choose_shards(const std::string& pattern, std::vector<std::string> paths);

}  // namespace mox::data::internal
