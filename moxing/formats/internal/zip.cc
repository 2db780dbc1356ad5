#include "moxing/formats/internal/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "moxing/formats/internal/zip_member.h"
#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kLocatorBytes = 20, kWideEndBytes = 56;
constexpr uint32_t kEndMagic = 0x06054b50, kEntryMagic = 0x02014b50, kLocalMagic = 0x04034b50,
                   kLocatorMagic = 0x07064b50, kWideEndMagic = 0x06064b50;
// A field that holds these is in a zip64 record instead, eight bytes wide.
constexpr uint64_t kWide16 = 0xffff, kWide32 = 0xffffffff;
constexpr uint16_t kWideFields = 1;  // the extra field of an entry that has them
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

// Where the directory begins, and what it says of a member.
struct Directory {
  uint64_t begin, entries;
};
struct Entry {
  uint64_t packed, size, local;  // `local`: where the member's own head is
};

class ZipReader {
 public:
  ZipReader(const ByteSource& archive, const std::string& path) : archive_(archive), path_(path) {}

  void read(FunctionRef<bool(const std::string&)> wanted,
            FunctionRef<void(const std::string&, ByteStream&)> each) const {
    const Directory directory = find_directory();
    uint64_t at = directory.begin;
    // Members may not lie on top of each other: then what is unpacked is bounded by the archive's size.
    uint64_t packed_total = 0;
    for (uint64_t i = 0; i < directory.entries; ++i) {
      const ZipRecord entry = record(at, kEntryBytes);
      if (entry.number(0, 4) != kEntryMagic) fail(at, "an entry of the directory is expected here");
      const size_t name_bytes = entry.number(28, 2), extra_bytes = entry.number(30, 2);
      const uint64_t next = at + kEntryBytes + name_bytes + extra_bytes + entry.number(32, 2);
      require(at, next - at);
      const Entry place = entry_of(at, entry, record(at + kEntryBytes + name_bytes, extra_bytes));
      if (place.packed > archive_.size() - packed_total) fail(at, "the members overlap");
      packed_total += place.packed;
      const ZipRecord text = record(at + kEntryBytes, name_bytes);
      const std::string name(reinterpret_cast<const char*>(text.bytes.data()), name_bytes);
      if (wanted(name)) {
        ZipMember content = member(at, entry, place);
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

  Directory find_directory() const {
    const uint64_t end_at = find_end();
    const ZipRecord end = record(end_at, kEndBytes);
    const Directory directory{end.number(16, 4), end.number(10, 2)};
    if ((directory.begin != kWide32 && directory.entries != kWide16) || end_at < kLocatorBytes)
      return directory;
    const ZipRecord locator = record(end_at - kLocatorBytes, kLocatorBytes);
    if (locator.number(0, 4) != kLocatorMagic) return directory;  // the numbers themselves
    const uint64_t wide_at = locator.number(8, 8);
    const ZipRecord wide = record(wide_at, kWideEndBytes);
    if (wide.number(0, 4) != kWideEndMagic) fail(wide_at, "the end of a zip64 directory is expected here");
    return {wide.number(48, 8), wide.number(32, 8)};
  }

  // Where the end of the directory is, which a comment of up to 64 KiB may follow.
  uint64_t find_end() const {
    if (archive_.size() < kEndBytes) fail(0, "the file is too short for a zip archive");
    const size_t bytes = std::min<uint64_t>(archive_.size(), kEndBytes + 0xffff);
    const ZipRecord tail = record(archive_.size() - bytes, bytes);
    for (size_t at = bytes - kEndBytes + 1; at-- > 0;)
      if (tail.number(at, 4) == kEndMagic) return archive_.size() - bytes + at;
    fail(archive_.size() - kEndBytes,
         "this is no zip archive, or it is cut off: its directory's end is missing");
  }

  // The entry at `at`, with its extra fields: those that are too wide for it are there, in this order.
  Entry entry_of(uint64_t at, const ZipRecord& entry, const ZipRecord& extra) const {
    Entry place{.packed = entry.number(20, 4), .size = entry.number(24, 4), .local = entry.number(42, 4)};
    for (size_t begin = 0; begin + 4 <= extra.bytes.size();) {
      const size_t end = begin + 4 + extra.number(begin + 2, 2);
      if (end > extra.bytes.size()) break;  // others pad with what they like
      size_t field = begin + 4;
      if (extra.number(begin, 2) == kWideFields)
        for (uint64_t* value : {&place.size, &place.packed, &place.local})
          if (*value == kWide32) {
            if (field + 8 > end) fail(at, "a field of a zip64 member is missing");
            *value = extra.number(field, 8);
            field += 8;
          }
      begin = end;
    }
    return place;
  }

  ZipMember member(uint64_t at, const ZipRecord& entry, const Entry& place) const {
    const auto [packed, size, local] = place;
    const uint64_t method = entry.number(10, 2);
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
