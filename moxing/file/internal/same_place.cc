#include "moxing/file/internal/same_place.h"

#include <filesystem>

namespace mox::file::internal {

bool is_same_file(const Url& a, const Url& b) {
  if (a.remote != b.remote) return false;
  if (a.remote) return a.bucket == b.bucket && a.path == b.path;
  std::error_code missing;  // what is not there is nothing's equal
  return a.path == b.path || std::filesystem::equivalent(a.path, b.path, missing);
}

bool lies_in(const Url& inner, const Url& outer) {
  if (inner.remote != outer.remote || inner.bucket != outer.bucket) return false;
  std::string below = as_directory(inner).path, above = as_directory(outer).path;
  if (!inner.remote) {
    std::error_code ignored;
    // A relative path of which nothing is there yet would stay relative.
    const auto whole = [&](const std::string& path) {
      return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored).string();
    };
    below = whole(below) + "/";
    above = whole(above);
    if (!above.ends_with('/')) above += "/";
  }
  return below.starts_with(above);
}

}  // namespace mox::file::internal
