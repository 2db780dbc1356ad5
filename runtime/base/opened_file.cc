#include "runtime/base/opened_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

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

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (descriptor_ >= 0 && this != &other) ::close(descriptor_);
  descriptor_ = other.release();
  return *this;
}

int FileDescriptor::release() { return std::exchange(descriptor_, -1); }

// O_NONBLOCK: a FIFO in the file's place must not make us wait; for a file it changes nothing.
FileDescriptor open_regular_file(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) {
    if (errno == ENOENT) throw NotFound(fmt::format("no file '{}'", path));
    throw IoError(
        fmt::format("cannot open '{}': {}", path,
                    errno == ENXIO ? "it is a socket or a device that is not there" : std::strerror(errno)));
  }
  status_of(file, path);
  return file;
}

FileDescriptor open_kept_file(const std::string& path, unsigned mode) {
  FileDescriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode));
  if (file.get() < 0) {
    if (errno == ELOOP)
      throw IoError(
          fmt::format("'{}' is a link, which is not followed where files are written; remove it", path));
    throw IoError(fmt::format("cannot create '{}': {}", path, std::strerror(errno)));
  }
  if (status_of(file, path).st_nlink > 1)
    throw IoError(fmt::format(
        "'{}' has a second name in some other place, whose file would be changed too; remove it", path));
  return file;
}

void append_to(const FileDescriptor& file, const std::string& path, std::string_view text) {
  if (::lseek(file.get(), 0, SEEK_END) < 0)
    throw IoError(fmt::format("cannot find the end of '{}': {}", path, std::strerror(errno)));
  while (!text.empty()) {
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw IoError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
    text.remove_prefix(static_cast<size_t>(put));
  }
}

HeldDirectory::HeldDirectory(std::string path)
    : path_(std::move(path)),
      directory_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) {
  if (directory_.get() < 0) {
    const int reason = errno;
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
      throw IoError(
          fmt::format("'{}' is a link, which is not followed where files are written; remove it", path_));
    throw IoError(fmt::format("cannot open the directory '{}': {}", path_, std::strerror(reason)));
  }
  held_ = fmt::format("/proc/self/fd/{}", directory_.get());
  if (::access(held_.c_str(), F_OK) != 0) held_ = path_;  // a system without /proc
}

std::string HeldDirectory::file(std::string_view name) const { return fmt::format("{}/{}", held_, name); }

std::string HeldDirectory::named(std::string message) const {
  if (held_ == path_) return message;
  for (size_t at = 0; (at = message.find(held_ + "/", at)) != message.npos; at += path_.size())
    message.replace(at, held_.size(), path_);
  return message;
}

}  // namespace mox
