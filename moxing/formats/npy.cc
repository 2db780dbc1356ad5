#include "moxing/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "moxing/formats/internal/byte_source.h"
#include "moxing/formats/internal/zip.h"
#include "runtime/base/error.h"

namespace mox::data {
namespace {

using internal::ByteSource;
using internal::ByteStream;
using internal::FileSource;
using internal::MemorySource;
using internal::SourceStream;

uint64_t stored_number(const std::byte* from, size_t bytes, bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value = value << 8 | std::to_integer<uint64_t>(from[big_endian ? i : bytes - 1 - i]);
  return value;
}

float half_to_float(uint64_t half) {
  const int exponent = half >> 10 & 0x1f;
  const float mantissa = half & 0x3ff;
  const float magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                          : exponent == 31 ? (mantissa == 0 ? std::numeric_limits<float>::infinity()
                                                            : std::numeric_limits<float>::quiet_NaN())
                                           : std::ldexp(mantissa + 1024, exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

// Where the values stand in a file, for messages.
struct NpyPlace {
  const std::string& name;
  size_t begin;  // of the first value
  [[noreturn]] void fail(size_t offset, const std::string& what) const {
    throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
  }
  void require_bools(std::span<const std::byte> values, size_t first) const {
    const auto bad = std::ranges::find_if(values, [](std::byte value) { return value > std::byte{1}; });
    if (bad != values.end()) fail(begin + first + (bad - values.begin()), "a bool is neither 0 nor 1");
  }
};

// The values of another byte order, axis order or type, put into their places as they come.
class NpyConversion {
 public:
  NpyConversion(const NpyHeader& header, size_t value_bytes, Array& result)
      : header_(header),
        value_bytes_(value_bytes),
        out_bytes_(size_of(header.type.dtype)),
        to_(result.data()),
        index_(header.type.shape.rank(), 0),
        step_(header.type.shape.rank(), 1) {
    const Shape& shape = header.type.shape;
    for (size_t axis = step_.size(); axis-- > 1;)
      step_[axis - 1] = step_[axis] * shape[static_cast<int>(axis)];
  }

  void take(std::span<const std::byte> values) {  // whole ones
    for (size_t at = 0; at < values.size(); at += value_bytes_) {
      put(stored_number(values.data() + at, value_bytes_, header_.big_endian), to_ + place_ * out_bytes_);
      go_on();
    }
  }

 private:
  void put(uint64_t bits, std::byte* to) const {
    if (header_.stored == "f2") {
      const float value = half_to_float(bits);
      std::memcpy(to, &value, sizeof value);
      return;
    }
    const unsigned spare = static_cast<unsigned>(64 - 8 * value_bytes_);
    const int64_t value =
        header_.stored[0] == 'i' ? static_cast<int64_t>(bits << spare) >> spare : static_cast<int64_t>(bits);
    std::memcpy(to, &value, out_bytes_);
  }
  void go_on() {
    if (!header_.fortran_order) {
      ++place_;
      return;
    }
    for (size_t axis = 0; axis < index_.size(); ++axis) {
      place_ += step_[axis];
      if (++index_[axis] < static_cast<size_t>(header_.type.shape[static_cast<int>(axis)])) return;
      place_ -= index_[axis] * step_[axis];
      index_[axis] = 0;
    }
  }

  const NpyHeader& header_;
  const size_t value_bytes_, out_bytes_;
  std::byte* const to_;
  std::vector<size_t> index_, step_;  // of the next value in Fortran's order; how far an axis steps in C's
  size_t place_ = 0;
};

// The begin of a file with its header.
struct NpyBegin {
  NpyBegin(ByteStream& content, const std::string& name) {
    constexpr size_t kAlwaysEnough = size_t{64} << 10;
    bytes.resize(std::min<uint64_t>(kAlwaysEnough, content.left()));
    content.read(bytes);
    header = parse_npy_header(bytes, name);
  }
  std::span<const std::byte> values() const { return std::span(bytes).subspan(header.data_begin); }

  std::vector<std::byte> bytes;
  NpyHeader header;
};

Array array_for(const TensorType& type, const std::string& name) {
  try {
    return Array::uninitialized(type);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(fmt::format(
        "'{}': {}; the arrays of .npy and .npz files are held in memory whole, whatever data_memory_mb says: "
        "raise the limit (ulimit -v, the control group's), or write the rows as TFRecord files, which are read a "
        "record at a time, within data_memory_mb",
        name, error.what()));
  }
}

// Straight into the array's memory where its bytes are the file's.
Array read_array(ByteStream& content, const std::string& name) {
  const uint64_t file_bytes = content.left();
  const NpyBegin begin(content, name);
  const NpyHeader& header = begin.header;
  const TensorType& type = header.type;
  const NpyPlace place{name, header.data_begin};
  const uint64_t bytes = file_bytes - header.data_begin, count = type.shape.elements();
  const size_t value_bytes = header.stored == "?" ? 1 : header.stored[1] - '0';
  if (bytes / value_bytes != count || bytes % value_bytes != 0)
    place.fail(header.data_begin, fmt::format("{} needs {} bytes after the header, {} are given",
                                              to_string(type), count * value_bytes, bytes));
  Array array = array_for(type, name);
  const std::span<const std::byte> first = begin.values();
  const bool are_bools = type.dtype == DType::kBool;
  if (header.plain()) {
    const std::span<std::byte> all(array.data(), bytes);
    std::ranges::copy(first, all.begin());
    content.read(all.subspan(first.size()));
    if (are_bools) place.require_bools(all, 0);
    return array;
  }
  NpyConversion conversion(header, value_bytes, array);
  std::vector<std::byte> block(first.begin(), first.end());
  for (uint64_t done = 0; done < bytes;) {
    const size_t whole = block.size() - block.size() % value_bytes;
    const std::span<const std::byte> values = std::span(block).first(whole);
    if (are_bools) place.require_bools(values, done);
    conversion.take(values);
    done += whole;
    block.erase(block.begin(), block.begin() + whole);
    constexpr uint64_t kBlock = uint64_t{1} << 20;
    const size_t kept = block.size();
    block.resize(kept + std::min(kBlock, content.left()));
    content.read(std::span(block).subspan(kept));
  }
  return array;
}

NpyHeader read_header(ByteStream& content, const std::string& name) { return NpyBegin(content, name).header; }

// What `parse` makes of the arrays of an archive, or of those of `names`, if given.
template <typename T>
std::map<std::string, T> members_of(const ByteSource& archive, const std::string& name,
                                    const std::vector<std::string>* names,
                                    T (*parse)(ByteStream&, const std::string&)) {
  std::map<std::string, T> members;
  std::string there;
  const auto key_of = [](const std::string& member) { return member.substr(0, member.size() - 4); };
  const auto is_wanted = [&](const std::string& member) {
    if (!member.ends_with(".npy") || member.starts_with("__MACOSX/")) return false;
    const std::string key = key_of(member);
    there += (there.empty() ? "" : ", ") + key;
    return !names || std::find(names->begin(), names->end(), key) != names->end();
  };
  internal::read_zip(archive, name, is_wanted, [&](const std::string& member, ByteStream& content) {
    if (members.contains(key_of(member)))
      throw DataError(fmt::format("'{}': there are two arrays '{}'", name, key_of(member)));
    members.emplace(key_of(member), parse(content, name + ":" + member));
  });
  for (size_t i = 0; names && i < names->size(); ++i)
    if (!members.contains((*names)[i]))
      throw NotFound(fmt::format("'{}' has no array '{}'; it has {}", name, (*names)[i],
                                 there.empty() ? "none" : there));
  return members;
}

Dataset rows_of(std::vector<Array> arrays, const std::vector<std::string>& names, SourceLocation where) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape().rank() == 0)
      throw DataError(
          fmt::format("'{}' is a single number: an array with a row for each sample is expected", names[i]));
    if (arrays[i].shape()[0] != arrays[0].shape()[0])
      throw DataError(fmt::format("'{}' has {} rows and '{}' has {}: one for each sample is expected in all",
                                  names[0], arrays[0].shape()[0], names[i], arrays[i].shape()[0]));
  }
  return Dataset::from_arrays(std::move(arrays), where);
}

}  // namespace

Array parse_npy(std::span<const std::byte> content, const std::string& name) {
  const MemorySource source(content);
  SourceStream stream(source);
  return read_array(stream, name);
}

std::map<std::string, Array> parse_npz(std::span<const std::byte> content, const std::string& name) {
  return members_of(MemorySource(content), name, nullptr, read_array);
}

Array read_npy(const std::string& path) {
  const FileSource source(path);
  SourceStream stream(source);
  return read_array(stream, path);
}

std::map<std::string, Array> read_npz(const std::string& path) {
  return members_of(FileSource(path), path, nullptr, read_array);
}

std::map<std::string, Array> read_npz(const std::string& path, const std::vector<std::string>& names) {
  return members_of(FileSource(path), path, &names, read_array);
}

std::map<std::string, NpyHeader> read_npz_headers(const std::string& path,
                                                  const std::vector<std::string>& names) {
  return members_of(FileSource(path), path, &names, read_header);
}

Dataset npy(const std::vector<std::string>& paths, SourceLocation where) {
  if (paths.empty()) throw InvalidArgument(fmt::format("npy ({}): no file is given", to_string(where)));
  std::vector<Array> arrays;
  for (const std::string& path : paths) arrays.push_back(read_npy(path));
  return rows_of(std::move(arrays), paths, where);
}

Dataset npz(const std::string& path, const std::vector<std::string>& names, SourceLocation where) {
  if (names.empty())
    throw InvalidArgument(fmt::format("npz ({}): no array of '{}' is named", to_string(where), path));
  const std::map<std::string, Array> all = read_npz(path, names);
  std::vector<Array> arrays;
  std::vector<std::string> places;
  for (const std::string& name : names) {
    arrays.push_back(all.at(name));
    places.push_back(path + ":" + name);
  }
  return rows_of(std::move(arrays), places, where);
}

}  // namespace mox::data
