#include "moxing/file/internal/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/local_name.h"
#include "runtime/base/opened_file.h"

namespace mox::file::internal {
namespace {

[[noreturn]] void throw_no_file(const std::string& path) {
  throw IoError(fmt::format("'{}' is a pipe, a socket or a device; a file is needed", path));
}

struct stat look_at(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_system("look at", path, errno);
  return status;
}

void require_ordinary(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode))
    throw FailedPrecondition(fmt::format("'{}' is a directory; a file is needed", path));
  if (!S_ISREG(status.st_mode)) throw_no_file(path);
}

constexpr int kMostLinks = 40;  // as many as the system itself follows

// Without O_NONBLOCK a pipe that nobody reads would be waited for.
int open_without_waiting(const std::string& path, int flags) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kLongestLease{60};
  constexpr std::chrono::milliseconds kBetweenAttempts{20};
  for (const auto until = Clock::now() + kLongestLease;;) {
    const int fd = ::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    // A file that a file server has lent to somebody, from whom the system has it back after a while.
    const bool is_lent = fd < 0 && errno == EWOULDBLOCK && Clock::now() < until;
    if (!is_lent) return fd;
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

bool is_name_of_descriptor(std::string_view path) {
  constexpr std::string_view kDescriptors = "/proc/self/fd/";
  return path.starts_with(kDescriptors) &&
         path.find_first_not_of("0123456789", kDescriptors.size()) == std::string_view::npos;
}

// What the link leads to; `path` itself if it is none any more. Throws UnusablePlace for another user's: who
// may put one there would choose which file of this user's is written.
std::string target_of_own_link(const std::string& path) {
  constexpr uid_t kRoot = 0;
  const Descriptor link(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (link.get() < 0) throw_system("open", path, errno);
  const struct stat status = look_at(link, path);
  if (!S_ISLNK(status.st_mode)) return path;
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (status.st_uid != kRoot && !is_this_users(status.st_uid, directory.empty() ? "." : directory.string()))
    throw UnusablePlace(fmt::format(
        "'{}' is a link of another user's (uid {}), which is not followed where files are written: it "
        "may lead to any file of this user's. Remove it, or name the file that it leads to",
        path, status.st_uid));
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(link.get(), "", target, sizeof target);
  if (length < 0) throw_system("follow the link", path, errno);
  return directory / std::string_view(target, length);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
int Descriptor::release() { return std::exchange(fd_, -1); }

void throw_system(std::string_view doing, const std::string& path, int error) {
  throw IoError(fmt::format("cannot {} '{}': {}", doing, path, std::strerror(error)));
}

void write_fully(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), std::min<size_t>(content.size(), 1 << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system("write", path, errno);
    content.remove_prefix(written);
  }
}

void write_fully_at(int fd, std::string_view content, int64_t offset, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::pwrite(fd, content.data(), std::min<size_t>(content.size(), 1 << 30), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system("write", path, errno);
    content.remove_prefix(written);
    offset += written;
  }
}

std::string read_fully_at(int fd, int64_t offset, int64_t length, const std::string& path) {
  std::string content(length, '\0');
  size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t got = ::pread(fd, content.data() + filled,
                                std::min<size_t>(content.size() - filled, 1 << 30), offset + filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system("read", path, errno);
    if (got == 0) break;
    filled += got;
  }
  content.resize(filled);
  return content;
}

Descriptor open_ordinary_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw NotFound(fmt::format("no file '{}'", path));
    throw_system("open", path, errno);
  }
  require_ordinary(look_at(file, path), path);
  return file;
}

Descriptor open_for_writing(const std::string& path, int flags) {
  std::string followed = path;
  int fd = open_without_waiting(followed, flags | O_NOFOLLOW);
  for (int links = 0; fd < 0 && errno == ELOOP && links < kMostLinks; ++links) {
    // The system shows what this process has open as a link that no path replaces (/dev/stdout leads there).
    if (is_name_of_descriptor(followed)) {
      fd = open_without_waiting(followed, flags);
      break;
    }
    followed = target_of_own_link(followed);
    fd = open_without_waiting(followed, flags | O_NOFOLLOW);
  }
  Descriptor file(fd);
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw NotFound(fmt::format("no file '{}'", path));
    if (errno == EISDIR) throw FailedPrecondition(fmt::format("'{}' is a directory; a file is needed", path));
    if (errno == ENXIO) throw_no_file(path);
    throw_system("open", path, errno);
  }
  const struct stat status = look_at(file, path);
  if (!S_ISCHR(status.st_mode)) require_ordinary(status, path);
  if (::fcntl(file.get(), F_SETFL, flags & O_APPEND) != 0) throw_system("open", path, errno);
  return file;
}

void require_replaceable_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) require_ordinary(status, path);
}

void sync_file(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL) throw_system("flush", path, errno);
}

}  // namespace mox::file::internal
