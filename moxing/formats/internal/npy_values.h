// The values of a .npy file as they stand there, and what they are in an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "moxing/formats/internal/byte_source.h"
#include "moxing/formats/npy.h"
#include "runtime/tensor/array.h"

namespace mox::data::internal {

// Of a value in the file.
size_t stored_bytes(const NpyHeader& header);

// All values in a file of `file_bytes`. Throws DataError, naming the file, where the array needs another
// number of them.
uint64_t bytes_of_values(const NpyHeader& header, uint64_t file_bytes, const std::string& name);

// Where the values stand in a file, for messages.
struct NpyPlace {
  const std::string& name;
  uint64_t begin;  // of the first value
  [[noreturn]] void fail(uint64_t offset, const std::string& what) const;
  // `first`: of these values, counted from `begin`.
  void require_bools(std::span<const std::byte> values, uint64_t first) const;
};

// The first bytes of a file, its header among them.
inline constexpr size_t kNpyHeaderBytes = size_t{64} << 10;

// The begin of a file with its header.
struct NpyBegin {
  NpyBegin(ByteStream& content, const std::string& name);
  std::span<const std::byte> values() const { return std::span(bytes).subspan(header.data_begin); }

  std::vector<std::byte> bytes;
  NpyHeader header;
};

// Values of another type or byte order, in the order of the file.
void convert_values(const NpyHeader& header, std::span<const std::byte> values, std::byte* to);

// Values of another byte order, axis order or type, put into their places as they come.
class NpyConversion {
 public:
  NpyConversion(const NpyHeader& header, Array& result);
  void take(std::span<const std::byte> values);  // whole ones

 private:
  void go_on();

  const NpyHeader& header_;
  const size_t value_bytes_, out_bytes_;
  std::byte* const to_;
  std::vector<int64_t> index_, step_;  // of the next value in Fortran's order; how far an axis steps in C's
  int64_t place_ = 0;
};

}  // namespace mox::data::internal
