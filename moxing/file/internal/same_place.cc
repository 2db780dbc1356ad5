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
    below = std::filesystem::weakly_canonical(below, ignored).string() + "/";
    above = std::filesystem::weakly_canonical(above, ignored).string();
    if (!above.ends_with('/')) above += "/";
  }
  return below.starts_with(above);
}

}  // namespace mox::file::internal
