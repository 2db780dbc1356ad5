#include "runtime/base/opened_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/local_name.h"
#include "runtime/base/resource_limits.h"

namespace mox {
namespace {

std::string_view kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFLNK:
      return "a link";
    default:
      return "a device";
  }
}

struct stat status_of(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw IoError(fmt::format("cannot stat '{}': {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw IoError(fmt::format("'{}' is {}, not a regular file", path, kind_of(status.st_mode)));
  return status;
}

// The system counts a name off before it is gone. To look for a name that nobody has looked for yet waits
// until whoever changes the directory is through.
void wait_for_changes_under_way(const std::string& path) {
  static std::atomic<uint64_t> number{0};
  struct stat status {};
  [[maybe_unused]] const int found =
      ::lstat(fmt::format("{}.{}-{}", path, ::getpid(), ++number).c_str(), &status);
}

// Whether the name by which the file was opened has been taken away since. A name that is gone does not come
// back: another file of that name, or the same one, is another name.
bool has_lost_its_name(const FileDescriptor& file, const std::string& path) {
  constexpr std::string_view kGone = " (deleted)";
  char name[PATH_MAX + kGone.size()];
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", file.get()).c_str(), name, sizeof name);
  if (length > 0) return std::string_view(name, length).ends_with(kGone);
  // A system without /proc: by what has the name now.
  struct stat opened = {}, there = {};
  return ::fstat(file.get(), &opened) != 0 || ::lstat(path.c_str(), &there) != 0 ||
         there.st_dev != opened.st_dev || there.st_ino != opened.st_ino;
}

std::string directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

constexpr int kMostReplaced = 10;  // while it was opened

// O_NONBLOCK: a FIFO in the file's place must not make us wait; for a file it changes nothing.
FileDescriptor open_for_reading(const std::string& path, int flags) {
  require_local_name(path);
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
  if (file.get() < 0) {
    if (errno == ENOENT) throw NotFound(fmt::format("no file '{}'", path));
    if (errno == ELOOP && (flags & O_NOFOLLOW) != 0)
      throw UnusablePlace(
          fmt::format("'{}' is a link, which is not followed where what is read is written anew; "
                      "remove it",
                      path));
    throw IoError(
        fmt::format("cannot open '{}': {}", path,
                    errno == ENXIO ? "it is a socket or a device that is not there" : std::strerror(errno)));
  }
  status_of(file, path);
  return file;
}

[[noreturn]] void refuse_link(const std::string& path) {
  throw UnusablePlace(fmt::format(
      "'{}' is a link, which is not followed where files are written: who may make one there would "
      "have files elsewhere written and deleted. Remove it; if the files are to be there, move "
      "them here, or name their directory itself",
      path));
}

bool is_link_in(int directory, const std::string& path) {
  struct stat status {};
  return ::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

}  // namespace

void require_memory(size_t bytes, const std::string& path) {
  constexpr size_t kAlwaysRead = 64 << 20;
  if (bytes <= kAlwaysRead) return;
  if (const size_t most = available_memory(); bytes > most)
    throw IoError(fmt::format(
        "'{}' has {} bytes to be read at once, more than the {} bytes of memory that this process "
        "may have: they are not read",
        path, bytes, most));
}

uint64_t unforeseeable_number() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    throw IoError(fmt::format("the system gives no random number: {}", std::strerror(errno)));
  return number;
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (descriptor_ >= 0 && this != &other) ::close(descriptor_);
  descriptor_ = other.release();
  return *this;
}

int FileDescriptor::release() { return std::exchange(descriptor_, -1); }

FileDescriptor open_regular_file(const std::string& path) { return open_for_reading(path, 0); }

FileDescriptor open_file_to_go_on_with(const std::string& path) {
  FileDescriptor file = open_for_reading(path, O_NOFOLLOW);
  if (status_of(file, path).st_nlink > 1)
    throw UnusablePlace(
        fmt::format("'{}' has a second name in some other place, from where others may not be meant to "
                    "read it; remove it",
                    path));
  return file;
}

unsigned permissions_in_place_of(const std::string& path) {
  constexpr mode_t kOwners = 0600, kOthersRead = 0044;
  struct stat status {};
  const bool is_own =
      ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  return kOwners | (is_own ? status.st_mode & kOthersRead : kOthersRead);
}

bool is_this_users(unsigned owner, const std::string& directory) {
  if (owner == ::geteuid()) return true;
  const std::string probe = fmt::format("{}/.owner-{:016x}", directory, unforeseeable_number());
  const FileDescriptor file(::open(probe.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return false;
  ::unlink(probe.c_str());
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && status.st_uid == owner;
}

FileDescriptor open_kept_file(const std::string& path, unsigned mode) {
  require_local_name(path);
  for (int attempt = 0; attempt < kMostReplaced; ++attempt) {
    FileDescriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode));
    if (file.get() < 0) {
      if (errno == ELOOP)
        throw UnusablePlace(
            fmt::format("'{}' is a link, which is not followed where files are written; remove it", path));
      const int reason = errno;
      const std::string text = fmt::format("cannot create '{}': {}", path, std::strerror(reason));
      if (is_unusable_place(reason)) throw UnusablePlace(text);
      throw IoError(text);
    }
    // In this order: of a file that has one name, and whose name by which it was opened is there afterwards,
    // that is the one. Another's file would have had two while it had ours.
    const struct stat status = status_of(file, path);
    wait_for_changes_under_way(path);
    if (has_lost_its_name(file, path)) continue;
    if (!is_this_users(status.st_uid, directory_of(path)))
      throw UnusablePlace(
          fmt::format("'{}' belongs to another user (uid {}), who may read and change what is written to it; "
                      "remove it, make it this user's (chown), or choose another directory",
                      path, status.st_uid));
    if (status.st_nlink <= 1) return file;
    throw UnusablePlace(fmt::format(
        "'{}' has a second name in some other place, whose file would be changed too; remove it", path));
  }
  throw IoError(
      fmt::format("'{}' is replaced by somebody again and again while it is opened; choose a directory that "
                  "others may not write to",
                  path));
}

void append_to(const FileDescriptor& file, const std::string& path, std::string_view text) {
  if (::lseek(file.get(), 0, SEEK_END) < 0)
    throw IoError(fmt::format("cannot find the end of '{}': {}", path, std::strerror(errno)));
  while (!text.empty()) {
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw IoError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
    text.remove_prefix(put);
  }
}

void require_no_link(const std::string& path) {
  if (is_link_in(AT_FDCWD, path)) refuse_link(path);
}

HeldDirectory::HeldDirectory(std::string path, DirectoryLink link)
    : path_(std::move(path)),
      directory_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC |
                                           (link == DirectoryLink::kRefused ? O_NOFOLLOW : 0))) {
  if (directory_.get() < 0) {
    const int reason = errno;
    if (link == DirectoryLink::kRefused) require_no_link(path_);
    refuse(reason);
  }
  look_up();
}

HeldDirectory::HeldDirectory(const HeldDirectory& above, std::string_view name)
    : path_(fmt::format("{}{}{}", above.path_, above.path_.ends_with('/') ? "" : "/", name)) {
  const std::string last(name);
  directory_ = FileDescriptor(
      ::openat(above.directory_.get(), last.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (directory_.get() < 0) {
    const int reason = errno;
    if (is_link_in(above.directory_.get(), last)) refuse_link(path_);
    refuse(reason);
  }
  look_up();
}

void HeldDirectory::look_up() {
  held_ = fmt::format("/proc/self/fd/{}", directory_.get());
  if (::access(held_.c_str(), F_OK) != 0) held_ = path_;  // a system without /proc
}

void HeldDirectory::refuse(int reason) const {
  const std::string text = fmt::format("cannot open the directory '{}': {}", path_, std::strerror(reason));
  if (is_unusable_place(reason)) throw UnusablePlace(text);
  throw IoError(text);
}

void HeldDirectory::throw_named(const IoError& error) const { throw_alike(error, named(error.what())); }

std::string HeldDirectory::file(std::string_view name) const { return fmt::format("{}/{}", held_, name); }

std::string HeldDirectory::named(std::string message) const {
  if (held_ == path_) return message;
  for (size_t at = 0; (at = message.find(held_, at)) != message.npos;) {
    const size_t end = at + held_.size();
    const bool is_another = end < message.size() && message[end] >= '0' && message[end] <= '9';
    if (!is_another) message.replace(at, held_.size(), path_);
    at += is_another ? held_.size() : path_.size();
  }
  return message;
}

}  // namespace mox
