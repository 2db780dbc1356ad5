#include "moxing/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "moxing/checkpoint/internal/checksum_text.h"
#include "moxing/checkpoint/internal/safetensors_header.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/function_ref.h"

namespace mox {
namespace {

using internal::TensorEntry;
using ReadAt = FunctionRef<void(uint64_t offset, std::span<std::byte> out)>;

static_assert(std::endian::native == std::endian::little,
              "the bytes of tensors are written as they are in memory");

// A file opened for reading at any offset.
class InputFile {
 public:
  // O_NONBLOCK: a FIFO in the file's place must not make us wait; for a file it changes nothing.
  explicit InputFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ >= 0) return;
    if (errno == ENOENT) throw NotFound(fmt::format("no file '{}'", path));
    throw IoError(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  }
  ~InputFile() { ::close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t bytes() const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0)
      throw IoError(fmt::format("cannot stat '{}': {}", path_, std::strerror(errno)));
    if (!S_ISREG(status.st_mode))
      throw IoError(fmt::format("cannot read '{}': it is not a regular file", path_));
    return static_cast<uint64_t>(status.st_size);
  }

  void read_at(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const size_t wanted = std::min<size_t>(out.size(), size_t{1} << 30);
      const ssize_t got = ::pread(fd_, out.data(), wanted, static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        throw IoError(fmt::format("cannot read '{}' at byte {}: {}", path_, offset, std::strerror(errno)));
      }
      if (got == 0)
        throw DataError(fmt::format("'{}' became shorter while it was read, at byte {}", path_, offset));
      out = out.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
  }

 private:
  std::string path_;
  int fd_;
};

Array read_tensor(const TensorEntry& entry, uint64_t data_begin, ReadAt read_at, const std::string& path) {
  const uint64_t begin = data_begin + entry.begin, end = data_begin + entry.end;
  Array array;
  try {
    array = Array::uninitialized(entry.type);
  } catch (const std::bad_alloc&) {
    throw DataError(fmt::format("'{}': tensor '{}' takes {} bytes, which this process cannot get", path,
                                entry.name, end - begin));
  }
  const std::span<std::byte> bytes(array.data(), array.bytes());
  read_at(begin, bytes);
  if (entry.crc32 && crc32(bytes) != *entry.crc32)
    throw DataError(
        fmt::format("'{}': tensor '{}' (bytes {} to {}) is damaged: its checksum is {}, but the header "
                    "says {}",
                    path, entry.name, begin, end, internal::checksum_text(crc32(bytes)),
                    internal::checksum_text(*entry.crc32)));
  if (entry.type.dtype == DType::kBool) {
    const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (wrong != bytes.end())
      throw DataError(fmt::format("'{}': tensor '{}' is of dtype BOOL but has the value {} at byte {}", path,
                                  entry.name, static_cast<int>(*wrong),
                                  begin + static_cast<uint64_t>(wrong - bytes.begin())));
  }
  return array;
}

SafetensorsFile read_from(uint64_t file_bytes, ReadAt read_at, const std::string& path) {
  std::string first(std::min(file_bytes, internal::kLengthBytes), '\0');
  read_at(0, std::as_writable_bytes(std::span(first)));
  std::string text(internal::parse_header_length(first, file_bytes, path), '\0');
  read_at(internal::kLengthBytes, std::as_writable_bytes(std::span(text)));
  const uint64_t data_begin = internal::kLengthBytes + text.size();
  internal::SafetensorsHeader header = internal::parse_header(text, file_bytes - data_begin, path);

  SafetensorsFile file;
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
    std::copy_n(content.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
  };
  return read_from(content.size(), read_at, path);
}

}  // namespace mox
