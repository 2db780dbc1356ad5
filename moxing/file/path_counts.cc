#include "moxing/file/path_counts.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox::file {

void PathCounts::add(const std::string& directory, const std::string& path) {
  if (++counts_[directory] > kMostPathsToADirectory)
    throw IoError(fmt::format(
        "cannot list '{}': more than {} paths lead to that directory, by links among directories. "
        "Remove links, or name what is wanted without them",
        path, kMostPathsToADirectory));
}

}  // namespace mox::file
