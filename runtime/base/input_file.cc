#include "runtime/base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

namespace mox {

// O_NONBLOCK: a FIFO in the file's place must not make us wait; for a file it changes nothing.
InputFile::InputFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ >= 0) return;
  if (errno == ENOENT) throw NotFound(fmt::format("no file '{}'", path));
  throw IoError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

uint64_t InputFile::bytes() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0)
    throw IoError(fmt::format("cannot stat '{}': {}", path_, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw IoError(fmt::format("cannot read '{}': it is not a regular file", path_));
  return static_cast<uint64_t>(status.st_size);
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const size_t wanted = std::min<size_t>(out.size(), size_t{1} << 30);
    const ssize_t got = ::pread(fd_, out.data(), wanted, static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      throw IoError(fmt::format("cannot read '{}' at byte {}: {}", path_, offset, std::strerror(errno)));
    }
    if (got == 0)
      throw DataError(fmt::format("'{}' became shorter while it was read, at byte {}", path_, offset));
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

}  // namespace mox
