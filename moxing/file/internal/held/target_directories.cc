#include "moxing/file/internal/held/target_directories.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "moxing/file/internal/descriptor.h"

namespace mox::file::internal {
namespace {

void make_if_missing(const HeldDirectory& above, std::string_view name, mode_t permissions) {
  const std::string path = above.file(name);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 || errno != ENOENT) return;
  if (::mkdir(path.c_str(), permissions) != 0 && errno != EEXIST)
    throw_system("make the directory", above.named(path), errno);
}

}  // namespace

TargetDirectory directory_below(const TargetDirectory& top, std::string_view name) {
  TargetDirectory at = top;
  while (!name.empty()) {
    const size_t end = std::min(name.find('/'), name.size());
    at = std::make_shared<const HeldDirectory>(*at, name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return at;
}

TargetDirectory make_directory_below(const TargetDirectory& top, std::string_view name, mode_t permissions) {
  constexpr mode_t kOnTheWay = 0777;
  TargetDirectory at = top;
  while (!name.empty()) {
    const size_t end = std::min(name.find('/'), name.size());
    const std::string_view next = name.substr(0, end);
    make_if_missing(*at, next, end == name.size() ? permissions : kOnTheWay);
    at = std::make_shared<const HeldDirectory>(*at, next);
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return at;
}

}  // namespace mox::file::internal
