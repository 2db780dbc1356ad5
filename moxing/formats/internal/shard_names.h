// Which of the files that a pattern matches are the shards it means.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mox::data::internal {

// `paths` are what glob found for `pattern`. Where the pattern ends with a star, copies (NAME.bak, NAME~ and
// the like) are left out with a warning; and where some are called NAME-00001-of-00004, so are files called
// otherwise and, for "NAME-*", shards of another name. The first `literal` bytes of the pattern stand for
// themselves. Throws DataError for shards of different numbers and for missing ones.
std::vector<std::string> choose_shards(const std::string& pattern, std::vector<std::string> paths,
                                       size_t literal = 0);

}  // namespace mox::data::internal
