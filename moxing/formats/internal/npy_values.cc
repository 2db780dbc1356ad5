#include "moxing/formats/internal/npy_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

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

void put_value(const NpyHeader& header, size_t value_bytes, const std::byte* from, std::byte* to) {
  const uint64_t bits = stored_number(from, value_bytes, header.big_endian);
  if (header.stored == "f2") {
    const float value = half_to_float(bits);
    std::memcpy(to, &value, sizeof value);
    return;
  }
  MOX_ASSERT(value_bytes >= 1 && value_bytes <= 8, "the header's type has so many bytes");
  const unsigned spare = static_cast<unsigned>(64 - 8 * value_bytes);
  const int64_t value =
      header.stored[0] == 'i' ? static_cast<int64_t>(bits << spare) >> spare : static_cast<int64_t>(bits);
  std::memcpy(to, &value, size_of(header.type.dtype));
}

}  // namespace

size_t stored_bytes(const NpyHeader& header) { return header.stored == "?" ? 1 : header.stored[1] - '0'; }

uint64_t bytes_of_values(const NpyHeader& header, uint64_t file_bytes, const std::string& name) {
  const uint64_t bytes = file_bytes - header.data_begin, count = header.type.shape.elements();
  const size_t value_bytes = stored_bytes(header);
  if (bytes / value_bytes != count || bytes % value_bytes != 0)
    NpyPlace{name, header.data_begin}.fail(header.data_begin,
                                           fmt::format("{} needs {} bytes after the header, {} are given",
                                                       to_string(header.type), count * value_bytes, bytes));
  return bytes;
}

void NpyPlace::fail(uint64_t offset, const std::string& what) const {
  throw DataError(fmt::format("'{}', offset {}: {}", name, offset, what));
}

void NpyPlace::require_bools(std::span<const std::byte> values, uint64_t first) const {
  const auto bad = std::ranges::find_if(values, [](std::byte value) { return value > std::byte{1}; });
  if (bad != values.end()) fail(begin + first + (bad - values.begin()), "a bool is neither 0 nor 1");
}

NpyBegin::NpyBegin(ByteStream& content, const std::string& name) {
  bytes.resize(std::min<uint64_t>(kNpyHeaderBytes, content.left()));
  content.read(bytes);
  header = parse_npy_header(bytes, name);
}

void convert_values(const NpyHeader& header, std::span<const std::byte> values, std::byte* to) {
  const size_t value_bytes = stored_bytes(header), out_bytes = size_of(header.type.dtype);
  for (size_t at = 0; at < values.size(); at += value_bytes, to += out_bytes)
    put_value(header, value_bytes, values.data() + at, to);
}

NpyConversion::NpyConversion(const NpyHeader& header, Array& result)
    : header_(header),
      value_bytes_(stored_bytes(header)),
      out_bytes_(size_of(header.type.dtype)),
      to_(result.data()),
      index_(header.type.shape.rank(), 0),
      step_(header.type.shape.rank(), 1) {
  const Shape& shape = header.type.shape;
  for (int axis = shape.rank() - 1; axis > 0; --axis) step_[axis - 1] = step_[axis] * shape[axis];
}

void NpyConversion::take(std::span<const std::byte> values) {
  if (!header_.fortran_order) {
    convert_values(header_, values, to_ + place_ * out_bytes_);
    place_ += values.size() / value_bytes_;
    return;
  }
  for (size_t at = 0; at < values.size(); at += value_bytes_) {
    put_value(header_, value_bytes_, values.data() + at, to_ + place_ * out_bytes_);
    go_on();
  }
}

void NpyConversion::go_on() {
  for (int axis = 0; axis < header_.type.shape.rank(); ++axis) {
    place_ += step_[axis];
    if (++index_[axis] < header_.type.shape[axis]) return;
    place_ -= index_[axis] * step_[axis];
    index_[axis] = 0;
  }
}

}  // namespace mox::data::internal
