#include "moxing/prediction/internal/part_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::internal {

PartFile::PartFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
  file_ = std::fopen(part_.c_str(), "wbe");
  if (!file_) fail("made");
}

PartFile::~PartFile() {
  if (!file_) return;
  std::fclose(file_);
  std::remove(part_.c_str());
}

void PartFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("written");
}

void PartFile::finish() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail("written");
  std::FILE* const file = std::exchange(file_, nullptr);
  const bool closed = std::fclose(file) == 0;
  if (!closed || std::rename(part_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    std::remove(part_.c_str());
    errno = error;
    fail("written");
  }
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  sync_directory(parent.empty() ? "." : parent);
}

void PartFile::fail(const char* doing) const {
  throw IoError(
      fmt::format("the predictions cannot be {}: '{}': {}; name a file in a directory that this user "
                  "may write, with room for it",
                  doing, part_, std::strerror(errno)));
}

}  // namespace mox::internal
