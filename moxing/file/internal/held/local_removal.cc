#include "moxing/file/internal/held/local_removal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "moxing/file/internal/held/found_entries.h"
#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

Descriptor open_no_link(int above, const std::string& name, int flags) {
  Descriptor directory(::openat(above, name.c_str(), flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.get() < 0 && errno == ENOTDIR) errno = ELOOP;
  return directory;
}

bool is_link_in(int directory, const std::string& name) {
  struct stat status {};
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

int removed(int directory, const std::string& name, bool is_directory) {
  return ::unlinkat(directory, name.c_str(), is_directory ? AT_REMOVEDIR : 0) == 0 ? 0 : errno;
}

std::string last_of(const std::string& path) { return std::filesystem::path(path).filename(); }

// `name` in the directory `above`; `path` is for messages.
void remove_all_of(int above, const std::string& name, const std::string& path, RemovalReport& report) {
  const Descriptor directory = open_no_link(above, name, O_RDONLY);
  if (directory.get() < 0) return report.keep(path, why_it_stays(errno));
  std::vector<Found> entries;
  try {
    entries = entries_of(Descriptor(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0)), path, false);
  } catch (const IoError& error) {
    return report.keep(path, error.what());
  }
  for (const Found& found : entries) {
    const std::string below = path + "/" + found.name;
    if (found.failure != 0)
      report.keep(below, std::strerror(found.failure));
    else if (S_ISDIR(found.status.st_mode))
      remove_all_of(directory.get(), found.name, below, report);
    else if (const int error = removed(directory.get(), found.name, false); error != 0 && error != ENOENT)
      report.keep(below, why_it_stays(error));
  }
  const int error = removed(above, name, true);
  if (error != 0 && error != ENOENT && error != ENOTEMPTY) report.keep(path, why_it_stays(error));
}

}  // namespace

Descriptor hold_directory(const std::string& path) {
  Descriptor directory(::open(path.empty() ? "." : path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) throw_system("open the directory", path, errno);
  return directory;
}

std::string_view why_it_stays(int error) {
  return error == ELOOP || error == ENOTDIR ? "a link, or a file, has come into the place of a directory"
                                            : std::strerror(error);
}

int EntriesBelow::directory_of(const std::string& name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return top_.get();
  const std::string_view directory = std::string_view(name).substr(0, slash);
  if (held_.get() >= 0 && held_name_ == directory) return held_.get();
  held_ = Descriptor();
  for (size_t begin = 0; begin < directory.size();) {
    const size_t end = std::min(directory.find('/', begin), directory.size());
    Descriptor below = open_no_link(held_.get() < 0 ? top_.get() : held_.get(),
                                    std::string(directory.substr(begin, end - begin)), O_PATH);
    if (below.get() < 0) {
      const int reason = errno;
      held_ = Descriptor();
      errno = reason;
      return -1;
    }
    held_ = std::move(below);
    begin = end + 1;
  }
  held_name_ = directory;
  return held_.get();
}

int EntriesBelow::remove(const std::string& name, bool is_directory) {
  const int directory = directory_of(name);
  return directory < 0 ? errno : removed(directory, name.substr(name.rfind('/') + 1), is_directory);
}

bool EntriesBelow::is_link(const std::string& name) {
  const int directory = directory_of(name);
  return directory >= 0 && is_link_in(directory, name.substr(name.rfind('/') + 1));
}

void remove_directory_tree(const std::string& path, RemovalReport& report) {
  const Descriptor above = hold_directory(std::filesystem::path(path).parent_path());
  remove_all_of(above.get(), last_of(path), path, report);
  struct stat status {};
  if (::fstatat(above.get(), last_of(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    report.keep(path, "it is not empty");
}

void remove_listed_tree(const std::string& path, const std::vector<DirectoryEntry>& entries,
                        RemovalReport& report) {
  const Descriptor above = hold_directory(std::filesystem::path(path).parent_path());
  Descriptor top = open_no_link(above.get(), last_of(path), O_PATH);
  if (top.get() < 0) throw IoError("cannot remove '" + path + "': " + std::string(why_it_stays(errno)));
  EntriesBelow below(std::move(top));
  // What is in a directory comes behind it; of a link the link goes, and nothing that it leads to.
  std::vector<std::pair<std::string, bool>> ours;
  std::string link;
  for (const DirectoryEntry& entry : entries) {
    if (!link.empty() && entry.name.starts_with(link + "/")) continue;
    const bool leads_elsewhere = entry.stat.is_directory && below.is_link(entry.name);
    if (leads_elsewhere) link = entry.name;
    ours.emplace_back(entry.name, entry.stat.is_directory && !leads_elsewhere);
  }
  const auto keep_unless_gone = [&](const std::string& name, int error) {
    if (error != 0 && error != ENOENT) report.keep(name, why_it_stays(error));
  };
  for (auto one = ours.rbegin(); one != ours.rend(); ++one)
    keep_unless_gone(path + "/" + one->first, below.remove(one->first, one->second));
  keep_unless_gone(path, removed(above.get(), last_of(path), true));
}

}  // namespace mox::file::internal
