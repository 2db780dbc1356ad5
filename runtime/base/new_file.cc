#include "runtime/base/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/local_name.h"

namespace mox {
namespace {

// Between a name and the digits of the one that a file has until it is whole.
constexpr std::string_view kWriting = ".writing-";
constexpr size_t kDigits = 16;

}  // namespace

NewFile::NewFile(std::string path)
    : path_(std::move(path)),
      temporary_(fmt::format("{}{}{:0{}x}", path_, kWriting, unforeseeable_number(), kDigits)) {
  require_local_name(path_);
  // O_EXCL follows no link and takes nothing that is there already.
  file_ = FileDescriptor(
      ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, permissions_in_place_of(path_)));
  if (file_.get() < 0) fail("create");
}

NewFile::~NewFile() {
  if (file_.get() >= 0) ::unlink(temporary_.c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
  write_at(end_, bytes);
  end_ += bytes.size();
}

void NewFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file_.get(), bytes.data(), std::min<size_t>(bytes.size(), 1 << 30), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail("write");
    bytes = bytes.subspan(put);
    offset += put;
  }
}

void NewFile::publish() {
  if (::fsync(file_.get()) != 0) fail("flush");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename a finished file from");
  file_ = FileDescriptor();
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  sync_directory(parent.empty() ? "." : parent);
}

void NewFile::fail(const char* doing) const {
  throw IoError(fmt::format("cannot {} '{}': {}", doing, temporary_, std::strerror(errno)));
}

void remove_unfinished(const std::string& path) {
  const std::filesystem::path whole(path), parent = whole.parent_path();
  const std::string begin = whole.filename().string() + std::string(kWriting);
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator entry(parent.empty() ? "." : parent, error), end;
       !error && entry != end; entry.increment(error))
    if (const std::string name = entry->path().filename().string();
        name.starts_with(begin) && name.size() == begin.size() + kDigits)
      found.push_back(entry->path());
  for (const auto& file : found) std::filesystem::remove(file, error);
}

}  // namespace mox
