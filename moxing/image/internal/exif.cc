// EXIF 2.32, 4.5.2 and 4.6.4: a TIFF header (byte order, 42, offset of the first directory); a directory is a
// count and entries of 12 bytes (tag, type, count, value). Only tag 0x0112, orientation, is looked for.
#include "moxing/image/internal/format_decoder.h"

namespace mox::image::internal {
namespace {

class TiffReader {
 public:
  TiffReader(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  // The number of `size` bytes at `offset`, or -1 behind the end.
  int64_t number(uint64_t offset, int size) const {
    if (offset + static_cast<uint64_t>(size) > bytes_.size()) return -1;
    int64_t value = 0;
    for (int i = 0; i < size; ++i) {
      const int at = big_endian_ ? i : size - 1 - i;
      value = value << 8 | std::to_integer<int64_t>(bytes_[offset + at]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

// The standard asks for SHORT; writers give the number as any of TIFF's integers. 0: of another type.
int bytes_of_integer(int64_t type) {
  constexpr int64_t kByte = 1, kShort = 3, kLong = 4, kSignedByte = 6, kSignedShort = 8, kSignedLong = 9;
  switch (type) {
    case kByte:
    case kSignedByte:
      return 1;
    case kShort:
    case kSignedShort:
      return 2;
    case kLong:
    case kSignedLong:
      return 4;
    default:
      return 0;
  }
}

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) {
  constexpr int kUpright = 1, kOrientationTag = 0x0112;
  if (tiff.size() < 8 || tiff[0] != tiff[1]) return kUpright;
  const bool big_endian = tiff[0] == std::byte{'M'};
  if (!big_endian && tiff[0] != std::byte{'I'}) return kUpright;
  const TiffReader reader(tiff, big_endian);
  const int64_t directory = reader.number(4, 4);
  if (reader.number(2, 2) != 42) return kUpright;
  const int64_t entries = reader.number(directory, 2);
  for (int64_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;
    if (reader.number(entry, 2) != kOrientationTag) continue;
    const int64_t value = reader.number(entry + 8, bytes_of_integer(reader.number(entry + 2, 2)));
    return value >= 1 && value <= 8 ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

}  // namespace mox::image::internal
