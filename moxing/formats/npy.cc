#include "moxing/formats/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

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

  TensorType parse() {
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_dtype) {
        has_dtype = true;
        type_.dtype = dtype();
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
    return type_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("'{}', offset {}: {}", name_, offset_ + at_, what));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
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
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a string in the header does not end");
    const std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }

  DType dtype() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] != '\'') fail("arrays of records are not accepted");
    const std::string code = quoted();
    if (code == "<f4") return DType::kFloat32;
    if (code == "<i4") return DType::kInt32;
    if (code == "<i8") return DType::kInt64;
    if (code == "|u1") return DType::kUInt8;
    if (code == "|b1") return DType::kBool;
    if (code == "|O") fail("this is an array of Python objects: a pickle, which is not read");
    fail(
        fmt::format("values of type '{}' have no dtype here; expected <f4, <i4, <i8, |u1 or |b1 (in Python: "
                    "array.astype('float32'))",
                    code));
  }
  void order() {
    if (accept_word("True")) fail("the array is in Fortran's order; save numpy.ascontiguousarray(array)");
    if (!accept_word("False")) fail("'fortran_order' must be True or False");
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
      at_ = static_cast<size_t>(end - text_.data());
      dims.push_back(extent);
      if (dims.size() > kMostAxes) fail("the shape has too many axes");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    try {
      type_.shape = Shape(std::move(dims));
    } catch (const InvalidArgument& error) {
      fail(fmt::format("the shape is impossible: {}", error.what()));
    }
  }

  std::string_view text_;
  size_t offset_, at_ = 0;
  const std::string& name_;
  TensorType type_;
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
  return {HeaderParser(text.substr(begin, length), begin, name).parse(), begin + length};
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

Array parse_npy(std::span<const std::byte> content, const std::string& name) {
  const auto [type, begin] = parse_npy_header(content, name);
  const auto fail = [&](size_t offset, const std::string& what) {
    throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
  };
  const auto data = content.subspan(begin);
  if (data.size() != type.bytes())
    fail(begin, fmt::format("{} needs {} bytes after the header, {} are given", to_string(type), type.bytes(),
                            data.size()));
  if (type.dtype == DType::kBool)
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i] > std::byte{1}) fail(begin + i, "a bool is neither 0 nor 1");
  return Array::from_bytes(type, data);
}

std::map<std::string, Array> parse_npz(std::span<const std::byte> content, const std::string& name) {
  std::map<std::string, Array> arrays;
  for (const internal::ZipMember& member : internal::read_zip(content, name)) {
    const std::string key =
        member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
    if (!arrays.emplace(key, parse_npy(member.content, name + ":" + member.name)).second)
      throw DataError(fmt::format("'{}': there are two arrays '{}'", name, key));
  }
  return arrays;
}

Array read_npy(const std::string& path) {
  const std::string content = read_file(path);
  return parse_npy(bytes_of(content), path);
}

std::map<std::string, Array> read_npz(const std::string& path) {
  const std::string content = read_file(path);
  return parse_npz(bytes_of(content), path);
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
  const std::map<std::string, Array> all = read_npz(path);
  std::vector<Array> arrays;
  std::vector<std::string> places;
  for (const std::string& name : names) {
    const auto found = all.find(name);
    if (found == all.end()) {
      std::string there;
      for (const auto& [other, array] : all) there += (there.empty() ? "" : ", ") + other;
      throw NotFound(
          fmt::format("'{}' has no array '{}'; it has {}", path, name, there.empty() ? "none" : there));
    }
    arrays.push_back(found->second);
    places.push_back(path + ":" + name);
  }
  return rows_of(std::move(arrays), places, where);
}

}  // namespace mox::data
