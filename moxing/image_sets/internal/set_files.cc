#include "moxing/image_sets/internal/set_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "moxing/file/file.h"
#include "moxing/file/streams/streamed_objects.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/opened_file.h"

namespace mox::data::internal {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path) {
  const std::string text = fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno));
  if (errno == ENOENT) throw NotFound(text);
  throw IoError(text);
}

std::span<const std::byte> read_local(const std::string& path, RecordBuffer* buffer) {
  const FileDescriptor file = open_regular_file(path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("look at", path);
  require_memory(status.st_size, path);
  const auto bytes = buffer->take(status.st_size);
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path);
    if (got == 0) break;  // shorter than it was a moment ago
    filled += got;
  }
  return bytes.first(filled);
}

// Whether a file keeps its inode's number as long as it is there: those of file systems in user space (sshfs,
// s3fs) are given anew at every mount.
class InodeNumbers {
 public:
  bool are_kept(const std::string& path, dev_t device) {
    if (device_ == device) return are_kept_;
    constexpr decltype(statfs::f_type) kInUserSpace = 0x65735546;
    struct statfs system {};
    are_kept_ = ::statfs(path.c_str(), &system) == 0 && system.f_type != kInUserSpace;
    device_ = device;
    return are_kept_;
  }

 private:
  std::optional<dev_t> device_;
  bool are_kept_ = false;
};

// Directories that have changed places leave the times of the files below them alone, and copies may be given
// those of another file: the inode, and when it was last changed, tell these.
uint32_t add_file(const std::string& path, const std::string& etag, InodeNumbers& inodes, uint32_t sum) {
  if (file::is_remote(path)) {
    const std::string known = etag.empty() ? file::stat(path).etag : etag;
    return crc32c(std::as_bytes(std::span(known)), sum);
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail("look at", path);
  const int64_t facts[] = {
      status.st_size,         status.st_mtim.tv_sec,
      status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
      status.st_ctim.tv_nsec, inodes.are_kept(path, status.st_dev) ? static_cast<int64_t>(status.st_ino) : 0};
  return crc32c(std::as_bytes(std::span(facts)), sum);
}

std::unique_ptr<const file::StreamedObjects> objects_among(const std::string& directory,
                                                           const std::vector<std::string>& names,
                                                           std::vector<std::string> etags) {
  const bool some = directory.empty() ? std::any_of(names.begin(), names.end(), file::is_remote)
                                      : file::is_remote(directory);
  if (!some) return nullptr;
  etags.resize(names.size());
  return std::make_unique<const file::StreamedObjects>(std::move(etags));
}

}  // namespace

SetFiles::SetFiles(std::string directory, std::vector<std::string> names, std::vector<std::string> etags)
    : directory_(std::move(directory)),
      names_(std::move(names)),
      etags_(std::move(etags)),
      objects_(objects_among(directory_, names_, etags_)) {}
SetFiles::~SetFiles() = default;

std::string SetFiles::path(int64_t index) const {
  const std::string& name = names_[index];
  return directory_.empty() ? name : (std::filesystem::path(directory_) / name).string();
}

std::span<const std::byte> SetFiles::read(int64_t index, RecordBuffer* buffer) const {
  const std::string path = this->path(index);
  if (!objects_ || !file::is_remote(path)) return read_local(path, buffer);
  const auto content = objects_->read(index, path);
  const auto bytes = buffer->take(content->size());
  std::memcpy(bytes.data(), content->data(), content->size());
  return bytes;
}

void SetFiles::will_read(int64_t index) const {
  if (!objects_) return;
  if (const std::string path = this->path(index); file::is_remote(path)) objects_->will_read(index, path);
}

uint32_t SetFiles::checksum() const {
  InodeNumbers inodes;
  uint32_t sum = 0;
  for (int64_t i = 0; i < size(); ++i) sum = add_file(path(i), etags_.empty() ? "" : etags_[i], inodes, sum);
  return sum;
}

uint32_t files_checksum(const std::vector<std::string>& paths) {
  InodeNumbers inodes;
  uint32_t sum = 0;
  for (const std::string& path : paths) sum = add_file(path, "", inodes, sum);
  return sum;
}

}  // namespace mox::data::internal
