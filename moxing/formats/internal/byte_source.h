// Bytes that lie in memory or in a file, so that one reader serves both, and takes no more than it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/input_file.h"

namespace mox::data::internal {

// Read at any offset. Threads: any.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` with what lies at `offset`, all of it below size(). Throws IoError, and DataError for a file
  // that has become shorter.
  virtual void read_at(uint64_t offset, std::span<std::byte> out) const = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}  // which must outlive it
  uint64_t size() const override { return bytes_.size(); }
  void read_at(uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::span<const std::byte> bytes_;
};

class FileSource : public ByteSource {
 public:
  // Throws NotFound and IoError.
  explicit FileSource(const std::string& path) : file_(path), size_(file_.bytes()) {}
  uint64_t size() const override { return size_; }
  void read_at(uint64_t offset, std::span<std::byte> out) const override { file_.read_at(offset, out); }

 private:
  InputFile file_;
  uint64_t size_;
};

// Read from the begin on, once.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual uint64_t left() const = 0;  // bytes that were not read yet
  // The next bytes, at most left(). Throws as ByteSource, and DataError for what cannot be unpacked.
  virtual void read(std::span<std::byte> out) = 0;
};

// All of a source.
class SourceStream : public ByteStream {
 public:
  explicit SourceStream(const ByteSource& source) : source_(source) {}  // which must outlive it
  uint64_t left() const override { return source_.size() - at_; }
  void read(std::span<std::byte> out) override;

 private:
  const ByteSource& source_;
  uint64_t at_ = 0;
};

}  // namespace mox::data::internal
