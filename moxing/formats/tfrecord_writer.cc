#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "moxing/formats/tfrecord.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw IoError(fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

}  // namespace

TfRecordWriter::TfRecordWriter(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.writing-{}", path_, ::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("create", temporary_);
  buffer_.reserve(kBufferBytes);
}

TfRecordWriter::~TfRecordWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  std::remove(temporary_.c_str());
}

void TfRecordWriter::flush() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t wrote = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      fail("write", temporary_);
    }
    done += static_cast<size_t>(wrote);
  }
  buffer_.clear();
}

void TfRecordWriter::append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  bytes_ += bytes.size();
}

void TfRecordWriter::write(std::span<const std::byte> record) {
  MOX_ASSERT(descriptor_ >= 0, "a TfRecordWriter is written to before it is closed");
  const uint64_t length = record.size();
  const auto header = std::as_bytes(std::span(&length, 1));
  const uint32_t header_checksum = masked_crc32c(header), checksum = masked_crc32c(record);
  append(header);
  append(std::as_bytes(std::span(&header_checksum, 1)));
  append(record);
  append(std::as_bytes(std::span(&checksum, 1)));
  ++records_;
}

void TfRecordWriter::close() {
  MOX_ASSERT(descriptor_ >= 0, "a TfRecordWriter is closed once");
  flush();
  if (::fsync(descriptor_) != 0) fail("sync", temporary_);
  if (::close(std::exchange(descriptor_, -1)) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    std::remove(temporary_.c_str());
    errno = reason;
    fail("finish", path_);
  }
  const std::string directory = std::filesystem::path(path_).parent_path().string();
  sync_directory(directory.empty() ? "." : directory);
}

}  // namespace mox::data
