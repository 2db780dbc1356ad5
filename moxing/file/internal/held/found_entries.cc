#include "moxing/file/internal/held/found_entries.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

namespace mox::file::internal {
namespace {

struct Close {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

Descriptor open_directory(const std::string& path) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) throw_system("list", path, errno);
  return directory;
}

std::vector<Found> entries_of(Descriptor directory, const std::string& path, bool follow) {
  const std::unique_ptr<DIR, Close> listed(::fdopendir(directory.get()));
  if (!listed) throw_system("list", path, errno);
  const int held = directory.release();
  std::vector<Found> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listed.get());
    if (!entry) {
      if (errno != 0) throw_system("list", path, errno);
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    Found found{std::string(name)};
    if (::fstatat(held, entry->d_name, &found.status, AT_SYMLINK_NOFOLLOW) != 0) {
      found.failure = errno;
      if (found.failure == ENOENT) continue;
      // In a directory without the right to search it names alone are seen: nothing is left out in silence.
      if (follow) throw_system("look at", path + "/" + found.name, found.failure);
      entries.push_back(std::move(found));
      continue;
    }
    struct stat followed {};
    // What a broken link leads to is nothing: an empty file, so that a copy names it.
    if (S_ISLNK(found.status.st_mode) && follow) {
      if (::fstatat(held, entry->d_name, &followed, 0) == 0)
        found.status = followed;
      else
        found.status.st_size = 0;
    }
    entries.push_back(std::move(found));
  }
  std::sort(entries.begin(), entries.end(), [](const Found& a, const Found& b) { return a.name < b.name; });
  return entries;
}

}  // namespace mox::file::internal
