// The content of one member of a zip archive, unpacked as far as it is read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "moxing/formats/internal/byte_source.h"

namespace mox::data::internal {

class ZipMember : public ByteStream {
 public:
  struct Place {
    uint64_t begin = 0, packed = 0, size = 0;  // in the archive, of which it takes `packed` bytes; unpacked
    uint32_t checksum = 0;                     // CRC-32 of the content
    bool deflated = false;
  };
  // `archive` and `path`, for messages, must outlive it.
  ZipMember(const ByteSource& archive, const std::string& path, const Place& place);
  ~ZipMember() override;
  ZipMember(ZipMember&&) noexcept;
  ZipMember& operator=(ZipMember&&) = delete;

  uint64_t left() const override { return place_.size - given_; }
  void read(std::span<std::byte> out) override;

  // When all was read: throws DataError if more follows, or the checksum is another one.
  void require_whole();

 private:
  struct Inflation;  // of zlib
  [[noreturn]] void fail(const std::string& what) const;
  void inflate_some(std::span<std::byte>* out);
  void inflate_into(std::span<std::byte> out);

  const ByteSource& archive_;
  const std::string& path_;
  const Place place_;
  uint64_t taken_ = 0, given_ = 0;  // packed bytes, and bytes
  uint32_t checksum_ = 0;           // of what was given
  std::unique_ptr<Inflation> inflation_;
};

}  // namespace mox::data::internal
