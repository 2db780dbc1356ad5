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

InputFile::InputFile(const std::string& path) : path_(path), file_(open_regular_file(path)) {}

uint64_t InputFile::bytes() const { return version().bytes; }

InputFile::Version InputFile::version() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0)
    throw IoError(fmt::format("cannot stat '{}': {}", path_, std::strerror(errno)));
  constexpr int64_t kSecond = 1'000'000'000;
  return {static_cast<uint64_t>(status.st_size),
          int64_t{status.st_mtim.tv_sec} * kSecond + status.st_mtim.tv_nsec};
}

void InputFile::will_read(uint64_t offset, uint64_t bytes) const {
  ::posix_fadvise(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const size_t wanted = std::min<size_t>(out.size(), size_t{1} << 30);
    const ssize_t got = ::pread(file_.get(), out.data(), wanted, offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw IoError(fmt::format("cannot read '{}' at byte {}: {}", path_, offset, std::strerror(errno)));
    }
    if (got == 0)
      throw DataError(fmt::format("'{}' became shorter while it was read, at byte {}", path_, offset));
    out = out.subspan(got);
    offset += got;
  }
}

}  // namespace mox
