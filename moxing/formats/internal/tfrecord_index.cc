#include "moxing/formats/internal/tfrecord_index.h"

#include <fmt/format.h>

#include <cstring>

#include "moxing/formats/tfrecord.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/input_file.h"

namespace mox::data::internal {
namespace {

constexpr char kMagic[8] = {'M', 'O', 'X', 'T', 'F', 'I', 'X', '1'};

struct IndexHeader {
  char magic[8];
  uint32_t checksum;  // of all that follows it
  uint32_t reserved;
  uint64_t file_bytes;
  int64_t modified_nanoseconds;
  uint64_t offsets;
};
constexpr size_t kChecked = offsetof(IndexHeader, reserved);

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

[[noreturn]] void fail(const std::string& name, uint64_t offset, const std::string& what) {
  throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
}

// The length that a record's header declares.
uint64_t verified_length(const std::byte* header, const std::string& name, uint64_t offset) {
  const auto length = load<uint64_t>(header);
  const uint32_t expected = masked_crc32c({header, kLengthBytes});
  if (const auto given = load<uint32_t>(header + kLengthBytes); given != expected)
    fail(name, offset,
         fmt::format(
             "this is no TFRecord file, or it is damaged: the checksum of a record's length ({}) should "
             "be {:#010x}, it is {:#010x}",
             length, expected, given));
  return length;
}

}  // namespace

std::vector<uint64_t> walk_records(ReadAt read_at, uint64_t file_bytes, const std::string& name,
                                   FunctionRef<void(uint64_t offset)> progress) {
  std::vector<uint64_t> offsets{0};
  uint64_t at = 0;
  while (at < file_bytes) {
    const uint64_t left = file_bytes - at;
    if (left < kFrameBytes)
      fail(name, at,
           fmt::format("the file is cut off: {} bytes are left, a record takes at least {}", left,
                       kFrameBytes));
    std::byte header[kHeaderBytes];
    read_at(at, header);
    const uint64_t length = verified_length(header, name, at);
    if (length > left - kFrameBytes)
      fail(name, at,
           fmt::format(
               "a record of {} bytes does not fit into the {} bytes that are left: the file is cut off",
               length, left));
    at += length + kFrameBytes;
    offsets.push_back(at);
    if (offsets.size() % 4096 == 0) progress(at);
  }
  return offsets;
}

std::span<const std::byte> verified_record(std::span<const std::byte> framed, const std::string& name,
                                           uint64_t offset) {
  const uint64_t length = verified_length(framed.data(), name, offset);
  if (length != framed.size() - kFrameBytes)
    fail(name, offset,
         fmt::format("the record has {} bytes, the index says {}: the file has changed since it was opened",
                     length, framed.size() - kFrameBytes));
  const auto data = framed.subspan(kHeaderBytes, length);
  const uint32_t expected = masked_crc32c(data);
  if (const auto given = load<uint32_t>(framed.data() + kHeaderBytes + length); given != expected)
    fail(name, offset,
         fmt::format("a record of {} bytes is damaged: its checksum should be {:#010x}, it is {:#010x}",
                     length, expected, given));
  return data;
}

std::optional<std::vector<uint64_t>> load_index(const std::string& path, const FileIdentity& identity) {
  std::string content;
  try {
    // No file has more records than frames fit into it: what is larger belongs to no file of this size.
    const uint64_t most = sizeof(IndexHeader) + (identity.bytes / kFrameBytes + 1) * sizeof(uint64_t);
    if (const InputFile file(path); file.bytes() > most) return std::nullopt;
    content = read_file(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  if (bytes.size() < sizeof(IndexHeader)) return std::nullopt;
  const auto header = load<IndexHeader>(bytes.data());
  const size_t body = bytes.size() - sizeof(IndexHeader);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.checksum != crc32c(bytes.subspan(kChecked)) || header.file_bytes != identity.bytes ||
      header.modified_nanoseconds != identity.modified_nanoseconds || body % sizeof(uint64_t) != 0 ||
      header.offsets != body / sizeof(uint64_t) || header.offsets == 0)
    return std::nullopt;
  std::vector<uint64_t> offsets(header.offsets);
  std::memcpy(offsets.data(), bytes.data() + sizeof(IndexHeader), body);
  // The checksum tells damage, not malice: what is read later is sized by these.
  if (offsets.front() != 0 || offsets.back() != identity.bytes) return std::nullopt;
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1] || offsets[i] - offsets[i - 1] < kFrameBytes) return std::nullopt;
  return offsets;
}

void save_index(const std::string& path, const FileIdentity& identity, std::span<const uint64_t> offsets) {
  std::string content(sizeof(IndexHeader) + offsets.size_bytes(), '\0');
  IndexHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.file_bytes = identity.bytes;
  header.modified_nanoseconds = identity.modified_nanoseconds;
  header.offsets = offsets.size();
  std::memcpy(content.data(), &header, sizeof header);
  std::memcpy(content.data() + sizeof header, offsets.data(), offsets.size_bytes());
  header.checksum = crc32c(std::as_bytes(std::span(content.data(), content.size())).subspan(kChecked));
  std::memcpy(content.data(), &header, sizeof header);
  write_file_atomically(path, content);
}

}  // namespace mox::data::internal
