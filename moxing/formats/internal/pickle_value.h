// The values on the stack of the pickle reader. They live in one list and refer to each other by number, so
// that nothing is copied and a pickle that shares values cannot grow.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace mox::data::internal {

using ValueId = uint32_t;

enum class Callable { kReconstruct, kArray, kDtype, kEncode, kBytes, kFromBuffer, kScalar };

struct Nothing {};
struct Mark {};
struct Sequence {  // a list or a tuple
  std::vector<ValueId> items;
  bool is_tuple = false;
};
struct Dictionary {
  std::vector<ValueId> items;  // key, value, key, value
};
struct Text {
  std::string utf8;
};
struct Bytes {
  std::string bytes;
};
struct DtypeValue {  // of whole numbers
  size_t size = 1;
  bool is_signed = false, is_big_endian = false;
};
struct ArrayValue {
  std::vector<int64_t> shape;
  ValueId bytes = 0;
  DtypeValue dtype = {};
  bool is_fortran = false;  // the first index runs fastest
  bool built = false;
};
using PickleValue =
    std::variant<Nothing, Mark, int64_t, Text, Bytes, Sequence, Dictionary, Callable, DtypeValue, ArrayValue>;

}  // namespace mox::data::internal
