#include "moxing/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

#include "moxing/checkpoint/internal/checksum_text.h"
#include "moxing/checkpoint/internal/safetensors_header.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/input_file.h"
#include "runtime/base/opened_file.h"

namespace mox {
namespace {

using internal::TensorEntry;
using ReadAt = FunctionRef<void(uint64_t offset, std::span<std::byte> out)>;

static_assert(std::endian::native == std::endian::little,
              "the bytes of tensors are written as they are in memory");

[[noreturn]] void throw_damaged(const std::string& path, const TensorEntry& entry, uint64_t data_begin,
                                uint32_t sum) {
  throw DataError(
      fmt::format("'{}': tensor '{}' (bytes {} to {}) is damaged: its checksum is {}, but the header says {}",
                  path, entry.name, data_begin + entry.begin, data_begin + entry.end,
                  internal::checksum_text(sum), internal::checksum_text(*entry.crc32)));
}

Array read_tensor(const TensorEntry& entry, uint64_t data_begin, ReadAt read_at, const std::string& path) {
  const uint64_t begin = data_begin + entry.begin, end = data_begin + entry.end;
  Array array;
  try {
    array = Array::uninitialized(entry.type);
  } catch (const OutOfMemory&) {
    throw DataError(fmt::format("'{}': tensor '{}' takes {} bytes, which this process cannot get", path,
                                entry.name, end - begin));
  }
  const std::span<std::byte> bytes(array.data(), array.bytes());
  read_at(begin, bytes);
  if (entry.crc32)
    if (const uint32_t sum = crc32(bytes); sum != *entry.crc32) throw_damaged(path, entry, data_begin, sum);
  if (entry.type.dtype == DType::kBool) {
    const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (wrong != bytes.end())
      throw DataError(fmt::format("'{}': tensor '{}' is of dtype BOOL but has the value {} at byte {}", path,
                                  entry.name, static_cast<int>(*wrong),
                                  begin + static_cast<uint64_t>(wrong - bytes.begin())));
  }
  return array;
}

internal::SafetensorsHeader read_header(uint64_t file_bytes, ReadAt read_at, const std::string& path,
                                        uint64_t* data_begin) {
  std::string first(std::min(file_bytes, internal::kLengthBytes), '\0');
  read_at(0, std::as_writable_bytes(std::span(first)));
  std::string text(internal::parse_header_length(first, file_bytes, path), '\0');
  read_at(internal::kLengthBytes, std::as_writable_bytes(std::span(text)));
  *data_begin = internal::kLengthBytes + text.size();
  return internal::parse_header(text, file_bytes - *data_begin, path);
}

SafetensorsFile read_from(uint64_t file_bytes, ReadAt read_at, const std::string& path) {
  uint64_t data_begin = 0;
  internal::SafetensorsHeader header = read_header(file_bytes, read_at, path, &data_begin);

  // Before the first one gets memory: each may fit by itself, and holes cost their writer nothing.
  require_memory(file_bytes - data_begin, path);
  SafetensorsFile file;
  file.tensors.reserve(header.entries.size());
  for (const TensorEntry& entry : header.entries)
    file.tensors.push_back({entry.name, read_tensor(entry, data_begin, read_at, path)});
  std::sort(file.tensors.begin(), file.tensors.end(),
            [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  file.metadata = std::move(header.metadata);
  file.checksummed = header.checksummed;
  file.stamp = {file_bytes, header.crc32};
  return file;
}

}  // namespace

SafetensorsStamp write_safetensors(const std::string& path, std::span<const NamedArray> tensors,
                                   const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedArray*> order;
  for (const NamedArray& tensor : tensors) {
    if (!tensor.value.defined())
      throw InvalidArgument(
          fmt::format("cannot write '{}': the array of tensor '{}' is undefined", path, tensor.name));
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const NamedArray* a, const NamedArray* b) { return a->name < b->name; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->name == order[i - 1]->name)
      throw InvalidArgument(
          fmt::format("cannot write '{}': two tensors are named '{}'", path, order[i]->name));
  std::stable_sort(order.begin(), order.end(), [](const NamedArray* a, const NamedArray* b) {
    return size_of(a->value.dtype()) > size_of(b->value.dtype());
  });

  std::vector<TensorEntry> entries;
  uint64_t offset = 0;
  for (const NamedArray* tensor : order) {
    const auto bytes = tensor->value.as_bytes();
    entries.push_back({tensor->name, tensor->value.type(), offset, offset + bytes.size(), crc32(bytes)});
    offset += bytes.size();
  }
  SafetensorsStamp stamp;
  const std::string header = internal::build_header(entries, metadata, &stamp.header_crc32);
  stamp.bytes = header.size() + offset;
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(header))};
  for (const NamedArray* tensor : order) pieces.push_back(tensor->value.as_bytes());
  write_file_atomically(path, pieces);
  return stamp;
}

SafetensorsFile read_safetensors(const std::string& path) {
  const InputFile file(path);
  const auto read_at = [&](uint64_t offset, std::span<std::byte> out) { file.read_at(offset, out); };
  return read_from(file.bytes(), read_at, path);
}

SafetensorsFile parse_safetensors(std::span<const std::byte> content, const std::string& path) {
  const auto read_at = [&](uint64_t offset, std::span<std::byte> out) {
    std::copy_n(content.begin() + offset, out.size(), out.begin());
  };
  return read_from(content.size(), read_at, path);
}

struct SafetensorsReader::Opened {
  InputFile file;
  uint64_t data_begin = 0;
  std::vector<TensorEntry> entries;  // sorted by name
};

SafetensorsReader::SafetensorsReader(const std::string& path)
    : path_(path), opened_(std::make_unique<Opened>(Opened{InputFile(path), 0, {}})) {
  const auto read_at = [&](uint64_t offset, std::span<std::byte> out) { opened_->file.read_at(offset, out); };
  internal::SafetensorsHeader header =
      read_header(opened_->file.bytes(), read_at, path, &opened_->data_begin);
  opened_->entries = std::move(header.entries);
  std::ranges::sort(opened_->entries, {}, &TensorEntry::name);
  metadata_ = std::move(header.metadata);
  stamp_ = {opened_->file.bytes(), header.crc32};
  checksummed_ = header.checksummed;
  for (const TensorEntry& entry : opened_->entries) tensors_.push_back({entry.name, entry.type});
}

SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;

void SafetensorsReader::read(size_t tensor, uint64_t offset, std::span<std::byte> out) const {
  const TensorEntry& entry = opened_->entries[tensor];
  if (offset > entry.end - entry.begin || out.size() > entry.end - entry.begin - offset)
    throw InvalidArgument(fmt::format("'{}': tensor '{}' has {} bytes; {} from byte {} on were asked for",
                                      path_, entry.name, entry.end - entry.begin, out.size(), offset));
  opened_->file.read_at(opened_->data_begin + entry.begin + offset, out);
}

void SafetensorsReader::verify() const {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  std::vector<std::byte> piece;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorEntry& entry = opened_->entries[i];
    if (!entry.crc32) continue;
    uint32_t sum = 0;
    for (uint64_t at = 0, bytes = entry.end - entry.begin; at < bytes; at += piece.size()) {
      piece.resize(std::min(kPiece, bytes - at));
      read(i, at, piece);
      sum = crc32(piece, sum);
    }
    if (sum != *entry.crc32) throw_damaged(path_, entry, opened_->data_begin, sum);
  }
}

}  // namespace mox
