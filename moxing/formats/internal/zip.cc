#include "moxing/formats/internal/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data::internal {
namespace {

constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint32_t kEndMagic = 0x06054b50, kEntryMagic = 0x02014b50, kLocalMagic = 0x04034b50;
constexpr uint64_t kMostInflation = 1032;

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> archive, const std::string& path) : archive_(archive), path_(path) {}

  void read(FunctionRef<bool(const std::string&)> wanted,
            FunctionRef<void(const std::string&, std::span<const std::byte>)> each) const {
    const size_t end = find_end();
    const size_t entries = number(end + 10, 2);
    size_t at = number(end + 16, 4);
    // Members may not lie on top of each other: then what is unpacked is bounded by the archive's size.
    uint64_t packed_total = 0;
    for (size_t i = 0; i < entries; ++i) {
      require(at, kEntryBytes);
      if (number(at, 4) != kEntryMagic) fail(at, "an entry of the directory is expected here");
      const size_t name_bytes = number(at + 28, 2);
      const size_t next = at + kEntryBytes + name_bytes + number(at + 30, 2) + number(at + 32, 2);
      require(at, next - at);
      packed_total += number(at + 20, 4);
      if (packed_total > archive_.size()) fail(at, "the members overlap");
      if (const std::string name = text(at + kEntryBytes, name_bytes); wanted(name)) each(name, member(at));
      at = next;
    }
  }

 private:
  [[noreturn]] void fail(size_t offset, const std::string& what) const {
    throw DataError(fmt::format("'{}', offset {}: {}", path_, offset, what));
  }
  void require(size_t offset, size_t bytes) const {
    if (offset > archive_.size() || bytes > archive_.size() - offset)
      fail(std::min(offset, archive_.size()), "the archive is cut off or damaged");
  }
  uint64_t number(size_t offset, size_t bytes) const {
    require(offset, bytes);
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(archive_[offset + i]);
    return value;
  }
  std::string text(size_t offset, size_t bytes) const {
    return {reinterpret_cast<const char*>(archive_.data()) + offset, bytes};
  }

  // The end of the directory, which a comment of up to 64 KiB may follow.
  size_t find_end() const {
    if (archive_.size() < kEndBytes) fail(0, "the file is too short for a zip archive");
    const size_t last = archive_.size() - kEndBytes;
    for (size_t back = 0; back <= std::min<size_t>(last, 0xffff); ++back)
      if (number(last - back, 4) == kEndMagic) return last - back;
    fail(last, "this is no zip archive, or it is cut off: its directory's end is missing");
  }

  std::vector<std::byte> member(size_t entry) const {
    const uint64_t method = number(entry + 10, 2), packed = number(entry + 20, 4),
                   size = number(entry + 24, 4);
    const size_t local = number(entry + 42, 4);
    if (packed == 0xffffffff || size == 0xffffffff || local == 0xffffffff)
      fail(entry, "a member of 4 GiB or more (zip64) is not accepted; save it as an .npy file");
    if (number(local, 4) != kLocalMagic) fail(local, "a member is expected here");
    const size_t begin = local + kLocalBytes + number(local + 26, 2) + number(local + 28, 2);
    require(begin, packed);
    if (number(entry + 8, 2) & 1) fail(entry, "the member is encrypted");
    std::vector<std::byte> content;
    if (method == 0) {
      if (packed != size) fail(entry, "a stored member has two sizes");
      content.assign(archive_.begin() + static_cast<ptrdiff_t>(begin),
                     archive_.begin() + static_cast<ptrdiff_t>(begin + packed));
    } else if (method == 8) {
      if (size / kMostInflation > packed)
        fail(entry, fmt::format("{} bytes cannot unpack to {}", packed, size));
      content = inflated(archive_.subspan(begin, packed), size, begin);
    } else {
      fail(entry,
           fmt::format("compression method {} is not accepted (0, stored, and 8, deflated, are)", method));
    }
    if (const uint32_t given = crc32(content); given != number(entry + 16, 4))
      fail(begin, fmt::format("the member is damaged: its checksum should be {:#010x}, it is {:#010x}",
                              number(entry + 16, 4), given));
    return content;
  }

  std::vector<std::byte> inflated(std::span<const std::byte> packed, uint64_t size, size_t offset) const {
    std::vector<std::byte> content(size);
    z_stream stream{};
    MOX_ASSERT(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib starts");
    std::byte none{};
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(content.empty() ? &none : content.data());
    stream.avail_out = static_cast<uInt>(size);
    const int status = inflate(&stream, Z_FINISH);
    const bool whole = status == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    if (!whole) fail(offset, "the member cannot be unpacked");
    return content;
  }

  std::span<const std::byte> archive_;
  const std::string& path_;
};

}  // namespace

void read_zip(std::span<const std::byte> archive, const std::string& path,
              FunctionRef<bool(const std::string& name)> wanted,
              FunctionRef<void(const std::string& name, std::span<const std::byte> content)> each) {
  ZipReader(archive, path).read(wanted, each);
}

}  // namespace mox::data::internal
