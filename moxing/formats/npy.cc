#include "moxing/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "moxing/formats/internal/zip.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace mox::data {
namespace {

// The header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, a literal of Python.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, size_t offset, const std::string& name)
      : text_(text), offset_(offset), name_(name) {}

  NpyHeader parse() {
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_dtype) {
        has_dtype = true;
        header_.type.dtype = dtype();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        order();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        shape();
      } else {
        fail(fmt::format("the header has a key '{}' that is unknown or there twice", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail("something follows the header's dictionary");
    if (!has_dtype || !has_order || !has_shape)
      fail("the header must have 'descr', 'fortran_order' and 'shape'");
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("'{}', offset {}: {}", name_, offset_ + at_, what));
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \n\t\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool accept(char letter) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  void expect(char letter) {
    if (!accept(letter)) fail(fmt::format("'{}' is expected in the header", letter));
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string quoted() {
    skip_spaces();
    for (const char* prefix : {"u'", "b'", "u\"", "b\""})  // as Python 2 and 3 spelled them
      if (text_.substr(at_).starts_with(prefix)) ++at_;
    const char mark = accept('"') ? '"' : '\'';
    if (mark == '\'') expect('\'');
    const size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) fail("a string in the header does not end");
    const std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }

  DType dtype() {
    skip_spaces();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
      fail("arrays of records are not accepted");
    const std::string code = quoted();
    const bool has_order = !code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos;
    header_.stored = code.substr(has_order ? 1 : 0);
    header_.big_endian = code.starts_with('>') && !header_.stored.ends_with('1');
    const std::string& stored = header_.stored;
    if (stored == "f4" || stored == "f2") return DType::kFloat32;
    if (stored == "i4" || stored == "i2" || stored == "i1" || stored == "u2") return DType::kInt32;
    if (stored == "i8" || stored == "u4") return DType::kInt64;
    if (stored == "u1") return DType::kUInt8;
    if (stored == "b1" || stored == "?") return DType::kBool;
    if (stored.starts_with('O')) fail("this is an array of Python objects: a pickle, which is not read");
    fail(fmt::format(
        "values of type '{}' have no dtype here; expected f4, f2, i1, i2, i4, i8, u1, u2, u4 or b1 (in "
        "Python: array.astype('float32'), or labels.astype('int64') for the numbers of classes)",
        code));
  }
  void order() {
    if (accept_word("True") || accept_word("1"))
      header_.fortran_order = true;
    else if (!accept_word("False") && !accept_word("0"))
      fail("'fortran_order' must be True or False");
  }
  void shape() {
    constexpr size_t kMostAxes = 64;
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail("an extent of the shape is no number");
      at_ = end - text_.data();
      accept('L');  // a long integer of Python 2
      dims.push_back(extent);
      if (dims.size() > kMostAxes) fail("the shape has too many axes");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    try {
      header_.type.shape = Shape(std::move(dims));
    } catch (const InvalidArgument& error) {
      fail(fmt::format("the shape is impossible: {}", error.what()));
    }
  }

  std::string_view text_;
  size_t offset_, at_ = 0;
  const std::string& name_;
  NpyHeader header_;
};

std::string_view code_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "<f4";
    case DType::kInt32:
      return "<i4";
    case DType::kInt64:
      return "<i8";
    case DType::kUInt8:
      return "|u1";
    case DType::kBool:
      return "|b1";
    default:
      throw InvalidArgument(fmt::format("NumPy has no type for {}", to_string(dtype)));
  }
}

std::span<const std::byte> bytes_of(const std::string& content) {
  return std::as_bytes(std::span(content.data(), content.size()));
}

uint64_t stored_number(const std::byte* from, size_t bytes, bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value = value << 8 | std::to_integer<uint64_t>(from[big_endian ? i : bytes - 1 - i]);
  return value;
}

float half_to_float(uint64_t half) {
  const int exponent = static_cast<int>(half >> 10 & 0x1f);
  const float mantissa = half & 0x3ff;
  const float magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                          : exponent == 31 ? (mantissa == 0 ? std::numeric_limits<float>::infinity()
                                                            : std::numeric_limits<float>::quiet_NaN())
                                           : std::ldexp(mantissa + 1024, exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

// The values of another byte order, axis order or type.
Array converted(const NpyHeader& header, size_t value_bytes, std::span<const std::byte> data) {
  Array result(header.type.dtype, header.type.shape);
  const size_t out_bytes = size_of(header.type.dtype);
  const auto& shape = header.type.shape;
  const size_t rank = shape.rank();
  std::vector<size_t> index(rank, 0), step(rank, 1);  // step: of an axis, in Fortran's order
  for (size_t axis = 1; axis < rank; ++axis)
    step[axis] = step[axis - 1] * static_cast<size_t>(shape[static_cast<int>(axis) - 1]);
  const size_t count = shape.elements();
  for (size_t i = 0, from = 0; i < count; ++i) {
    const uint64_t bits = stored_number(data.data() + (header.fortran_order ? from : i) * value_bytes,
                                        value_bytes, header.big_endian);
    std::byte* to = result.data() + i * out_bytes;
    if (header.stored == "f2") {
      const float value = half_to_float(bits);
      std::memcpy(to, &value, sizeof value);
    } else {
      const unsigned spare = static_cast<unsigned>(64 - 8 * value_bytes);
      const bool is_signed = header.stored[0] == 'i';
      const int64_t value =
          is_signed ? static_cast<int64_t>(bits << spare) >> spare : static_cast<int64_t>(bits);
      std::memcpy(to, &value, out_bytes);
    }
    for (size_t axis = rank; header.fortran_order && axis-- > 0;) {
      from += step[axis];
      if (++index[axis] < static_cast<size_t>(shape[axis])) break;
      from -= index[axis] * step[axis];
      index[axis] = 0;
    }
  }
  return result;
}

// What `parse` makes of the arrays of an archive, or of those of `names`, if given.
template <typename T>
std::map<std::string, T> members_of(std::span<const std::byte> content, const std::string& name,
                                    const std::vector<std::string>* names,
                                    T (*parse)(std::span<const std::byte>, const std::string&)) {
  std::map<std::string, T> members;
  std::string there;
  const auto key_of = [](const std::string& member) { return member.substr(0, member.size() - 4); };
  const auto is_wanted = [&](const std::string& member) {
    if (!member.ends_with(".npy") || member.starts_with("__MACOSX/")) return false;
    const std::string key = key_of(member);
    there += (there.empty() ? "" : ", ") + key;
    return !names || std::find(names->begin(), names->end(), key) != names->end();
  };
  internal::read_zip(
      content, name, is_wanted, [&](const std::string& member, std::span<const std::byte> bytes) {
        if (!members.emplace(key_of(member), parse(bytes, name + ":" + member)).second)
          throw DataError(fmt::format("'{}': there are two arrays '{}'", name, key_of(member)));
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

NpyHeader parse_npy_header(std::span<const std::byte> content, const std::string& name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const auto fail = [&](size_t offset, const std::string& what) {
    throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
  };
  if (!text.starts_with(kMagic) || text.size() < 10)
    fail(0, "this is no .npy file: it starts with \\x93NUMPY");
  const int version = std::to_integer<int>(content[6]);
  if (version < 1 || version > 3) fail(6, fmt::format("version {} of the format is unknown", version));
  const size_t length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (content.size() < begin) fail(8, "the file is cut off in its header");
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) length = length << 8 | std::to_integer<size_t>(content[8 + i]);
  if (length > content.size() - begin)
    fail(8, fmt::format("a header of {} bytes does not fit into the file", length));
  NpyHeader header = HeaderParser(text.substr(begin, length), begin, name).parse();
  header.data_begin = begin + length;
  return header;
}

std::string make_npy_header(const TensorType& type) {
  std::string shape;
  for (const int64_t extent : type.shape) shape += fmt::format("{}, ", extent);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code_of(type.dtype), shape);
  constexpr size_t kFixed = 10, kAlignment = 64;
  const size_t all = (kFixed + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(all - kFixed - 1, ' ');
  header += '\n';
  std::string result("\x93NUMPY\x01\x00", 8);
  result += static_cast<char>(header.size() & 0xff);
  result += static_cast<char>(header.size() >> 8);
  return result + header;
}

bool NpyHeader::plain() const {
  return !big_endian && !fortran_order && (stored == "?" || stored == code_of(type.dtype).substr(1));
}

Array parse_npy(std::span<const std::byte> content, const std::string& name) {
  const NpyHeader header = parse_npy_header(content, name);
  const TensorType& type = header.type;
  const size_t begin = header.data_begin;
  const auto fail = [&](size_t offset, const std::string& what) {
    throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
  };
  const auto data = content.subspan(begin);
  const size_t value_bytes = header.stored == "?" ? 1 : static_cast<size_t>(header.stored[1] - '0');
  const size_t count = type.shape.elements();
  if (data.size() / value_bytes != count || data.size() % value_bytes != 0)
    fail(begin, fmt::format("{} needs {} bytes after the header, {} are given", to_string(type),
                            count * value_bytes, data.size()));
  if (type.dtype == DType::kBool)
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i] > std::byte{1}) fail(begin + i, "a bool is neither 0 nor 1");
  return header.plain() ? Array::from_bytes(type, data) : converted(header, value_bytes, data);
}

std::map<std::string, Array> parse_npz(std::span<const std::byte> content, const std::string& name) {
  return members_of(content, name, nullptr, parse_npy);
}

Array read_npy(const std::string& path) {
  const std::string content = read_file(path);
  return parse_npy(bytes_of(content), path);
}

std::map<std::string, Array> read_npz(const std::string& path) {
  const std::string content = read_file(path);
  return parse_npz(bytes_of(content), path);
}

std::map<std::string, Array> read_npz(const std::string& path, const std::vector<std::string>& names) {
  const std::string content = read_file(path);
  return members_of(bytes_of(content), path, &names, parse_npy);
}

std::map<std::string, NpyHeader> read_npz_headers(const std::string& path,
                                                  const std::vector<std::string>& names) {
  const std::string content = read_file(path);
  return members_of(bytes_of(content), path, &names, parse_npy_header);
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
