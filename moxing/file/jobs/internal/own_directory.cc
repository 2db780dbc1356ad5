#include "moxing/file/jobs/internal/own_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/local_name.h"
#include "runtime/base/opened_file.h"

namespace mox::file::internal {
namespace {

constexpr mode_t kNewDirectory = 0755;  // what the umask leaves of it
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
// ~/.cache/moxing, which an earlier version may have made so that the group may write there, too.
constexpr std::string_view kOwnName = "moxing";

[[noreturn]] void refuse(const std::string& path, std::string_view why, std::string_view how_to_go_on) {
  throw UnusablePlace(
      fmt::format("'{}' {}: copies of what lies in a store are not kept there, since others could have files "
                  "elsewhere written and removed. {}; file.local_directory says where else they are to be",
                  path, why, how_to_go_on));
}

void make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kNewDirectory) == 0 || errno == EEXIST) return;
  const int reason = errno;
  const std::string text = fmt::format("cannot make the directory '{}': {}", path, std::strerror(reason));
  if (is_unusable_place(reason)) throw UnusablePlace(text);
  throw IoError(text);
}

}  // namespace

void make_own_directory(const std::string& path) {
  require_local_name(path);
  make_directory(path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    refuse(path, "is a link, which is not followed", "Remove it");
  // Held, so that what is found out is of the directory that is changed.
  const HeldDirectory held(path);
  if (::stat(held.path().c_str(), &status) != 0)
    throw IoError(fmt::format("cannot look at '{}': {}", path, std::strerror(errno)));
  if (!is_this_users(status.st_uid, held.path()))
    refuse(path, fmt::format("belongs to another user (uid {})", status.st_uid), "Remove it");
  if ((status.st_mode & kOthersWrite) == 0) return;
  if (::chmod(held.path().c_str(), status.st_mode & 07777 & ~kOthersWrite) != 0)
    refuse(path, "may be written to by others", fmt::format("Change that: chmod go-w '{}'", path));
}

void make_safe_directory(const std::string& path) {
  require_local_name(path);
  if (!is_there(path)) {
    const std::string parent = std::filesystem::path(path).parent_path();
    if (!parent.empty()) make_directories(parent);
    make_directory(path);
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw IoError(fmt::format("cannot look at '{}': {}", path, std::strerror(errno)));
  if (!S_ISDIR(status.st_mode)) refuse(path, "is no directory", "Remove it");
  if (status.st_uid != 0 && !is_this_users(status.st_uid, path))
    refuse(path, fmt::format("belongs to another user (uid {})", status.st_uid), "Name one of your own");
  // With the sticky bit, as /tmp has it, everybody may rename what is his own alone.
  if ((status.st_mode & kOthersWrite) == 0 || (status.st_mode & S_ISVTX) != 0) return;
  const bool is_ours = std::filesystem::path(path).filename() == kOwnName;
  if (!is_ours || ::chmod(path.c_str(), status.st_mode & 07777 & ~kOthersWrite) != 0)
    refuse(path, "may be written to by others", fmt::format("Change that: chmod go-w '{}'", path));
}

}  // namespace mox::file::internal
