#include "moxing/formats/internal/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "moxing/formats/internal/zip_member.h"
#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint32_t kEndMagic = 0x06054b50, kEntryMagic = 0x02014b50, kLocalMagic = 0x04034b50;
constexpr uint64_t kMostInflation = 1032;

// Bytes of the archive that belong together, and where they lie.
struct ZipRecord {
  std::vector<std::byte> bytes;
  uint64_t number(size_t at, size_t count) const {
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
    return value;
  }
};

class ZipReader {
 public:
  ZipReader(const ByteSource& archive, const std::string& path) : archive_(archive), path_(path) {}

  void read(FunctionRef<bool(const std::string&)> wanted,
            FunctionRef<void(const std::string&, ByteStream&)> each) const {
    const ZipRecord end = find_end();
    const size_t entries = end.number(10, 2);
    uint64_t at = end.number(16, 4);
    // Members may not lie on top of each other: then what is unpacked is bounded by the archive's size.
    uint64_t packed_total = 0;
    for (size_t i = 0; i < entries; ++i) {
      const ZipRecord entry = record(at, kEntryBytes);
      if (entry.number(0, 4) != kEntryMagic) fail(at, "an entry of the directory is expected here");
      const size_t name_bytes = entry.number(28, 2);
      const uint64_t next = at + kEntryBytes + name_bytes + entry.number(30, 2) + entry.number(32, 2);
      require(at, next - at);
      packed_total += entry.number(20, 4);
      if (packed_total > archive_.size()) fail(at, "the members overlap");
      const ZipRecord text = record(at + kEntryBytes, name_bytes);
      const std::string name(reinterpret_cast<const char*>(text.bytes.data()), name_bytes);
      if (wanted(name)) {
        ZipMember content = member(at, entry);
        each(name, content);
        if (content.left() == 0) content.require_whole();
      }
      at = next;
    }
  }

 private:
  [[noreturn]] void fail(uint64_t offset, const std::string& what) const {
    throw DataError(fmt::format("'{}', offset {}: {}", path_, offset, what));
  }
  void require(uint64_t offset, uint64_t bytes) const {
    if (offset > archive_.size() || bytes > archive_.size() - offset)
      fail(std::min(offset, archive_.size()), "the archive is cut off or damaged");
  }
  ZipRecord record(uint64_t offset, size_t bytes) const {
    require(offset, bytes);
    ZipRecord result{std::vector<std::byte>(bytes)};
    archive_.read_at(offset, result.bytes);
    return result;
  }

  // The end of the directory, which a comment of up to 64 KiB may follow.
  ZipRecord find_end() const {
    if (archive_.size() < kEndBytes) fail(0, "the file is too short for a zip archive");
    const size_t bytes = std::min<uint64_t>(archive_.size(), kEndBytes + 0xffff);
    const ZipRecord tail = record(archive_.size() - bytes, bytes);
    for (size_t at = bytes - kEndBytes + 1; at-- > 0;)
      if (tail.number(at, 4) == kEndMagic) return record(archive_.size() - bytes + at, kEndBytes);
    fail(archive_.size() - kEndBytes,
         "this is no zip archive, or it is cut off: its directory's end is missing");
  }

  ZipMember member(uint64_t at, const ZipRecord& entry) const {
    const uint64_t method = entry.number(10, 2), packed = entry.number(20, 4), size = entry.number(24, 4),
                   local = entry.number(42, 4);
    if (packed == 0xffffffff || size == 0xffffffff || local == 0xffffffff)
      fail(at, "a member of 4 GiB or more (zip64) is not accepted; save it as an .npy file");
    const ZipRecord head = record(local, kLocalBytes);
    if (head.number(0, 4) != kLocalMagic) fail(local, "a member is expected here");
    const uint64_t begin = local + kLocalBytes + head.number(26, 2) + head.number(28, 2);
    require(begin, packed);
    if (entry.number(8, 2) & 1) fail(at, "the member is encrypted");
    if (method != 0 && method != 8)
      fail(at,
           fmt::format("compression method {} is not accepted (0, stored, and 8, deflated, are)", method));
    if (method == 0 && packed != size) fail(at, "a stored member has two sizes");
    if (method == 8 && size / kMostInflation > packed)
      fail(at, fmt::format("{} bytes cannot unpack to {}", packed, size));
    return {archive_,
            path_,
            {.begin = begin,
             .packed = packed,
             .size = size,
             .checksum = static_cast<uint32_t>(entry.number(16, 4)),
             .deflated = method == 8}};
  }

  const ByteSource& archive_;
  const std::string& path_;
};

}  // namespace

void read_zip(const ByteSource& archive, const std::string& path,
              FunctionRef<bool(const std::string& name)> wanted,
              FunctionRef<void(const std::string& name, ByteStream& content)> each) {
  ZipReader(archive, path).read(wanted, each);
}

}  // namespace mox::data::internal
