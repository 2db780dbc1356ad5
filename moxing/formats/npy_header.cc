#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "moxing/formats/npy.h"
#include "runtime/base/error.h"

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
    std::string result(text_.substr(at_, end - at_));
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
    constexpr const char* kNumbered =
        "names of classes are numbered by numpy.unique(labels, return_inverse=True), which gives the names "
        "and, for each label, the number of its own";
    if (stored.starts_with('O'))
      fail(fmt::format(
          "this is an array of Python objects: a pickle, which is not read; save an array of one type of "
          "numbers; {}",
          kNumbered));
    if (stored.starts_with('U') || stored.starts_with('S'))
      fail(fmt::format("values of type '{}' are text, and numbers are expected; {}", code, kNumbered));
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

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> content, const std::string& name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const auto fail = [&](size_t offset, const std::string& what) {
    throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
  };
  if (!text.starts_with(kMagic) || text.size() < 10)
    fail(0,
         fmt::format(
             "this is no .npy file, which would start with \\x93NUMPY{}",
             text.starts_with("PK\x03\x04") ? ", but a zip archive: data::npz and read_npz read those" : ""));
  const int version = std::to_integer<int>(content[6]);
  if (version < 1 || version > 3) fail(6, fmt::format("version {} of the format is unknown", version));
  const size_t length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (content.size() < begin) fail(8, "the file is cut off in its header");
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) length = length << 8 | std::to_integer<size_t>(content[8 + i]);
  // NumPy itself reads no longer ones than 10,000 bytes.
  constexpr size_t kLongest = 60'000;
  if (length > kLongest)
    fail(8, fmt::format("a header of {} bytes; an array of numbers has a shorter one", length));
  if (length > content.size() - begin)
    fail(8, fmt::format("a header of {} bytes does not fit into the file", length));
  NpyHeader header = HeaderParser(text.substr(begin, length), begin, name).parse();
  header.data_begin = begin + length;
  return header;
}

std::string make_npy_header(std::string_view code, const Shape& shape) {
  std::string extents;
  for (const int64_t extent : shape) extents += fmt::format("{}{},", extents.empty() ? "" : " ", extent);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", code, extents);
  constexpr size_t kFixed = 10, kAlignment = 64;
  const size_t all = (kFixed + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(all - kFixed - 1, ' ');
  header += '\n';
  std::string result("\x93NUMPY\x01\x00", 8);
  result += static_cast<char>(header.size() & 0xff);
  result += static_cast<char>(header.size() >> 8);
  return result + header;
}

std::string make_npy_header(const TensorType& type) {
  return make_npy_header(code_of(type.dtype), type.shape);
}

bool NpyHeader::plain() const {
  return !big_endian && !fortran_order && (stored == "?" || stored == code_of(type.dtype).substr(1));
}

}  // namespace mox::data
