#include "moxing/formats/internal/pickle_calls.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "moxing/formats/internal/pickle_text.h"

namespace mox::data::internal {
namespace {

constexpr size_t kMostArguments = 8;  // of a call; an array of a buffer has four
constexpr size_t kMostAxes = 64;      // as in NumPy

// As they may be shown: the names of functions may be as long as the file.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 200;
  return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...";
}

}  // namespace

void PickleCalls::push_callable(std::string_view module, std::string_view name) {
  const std::string full = shown(module) + "." + shown(name);
  if (full == "numpy.core.multiarray._reconstruct" || full == "numpy._core.multiarray._reconstruct")
    push(Callable::kReconstruct);
  else if (full == "numpy.ndarray")
    push(Callable::kArray);
  else if (full == "numpy.dtype")
    push(Callable::kDtype);
  else if (full == "_codecs.encode")
    push(Callable::kEncode);
  else if (full == "__builtin__.bytes" || full == "builtins.bytes")
    push(Callable::kBytes);
  else if (full == "numpy.core.numeric._frombuffer" || full == "numpy._core.numeric._frombuffer")
    push(Callable::kFromBuffer);
  else if (full == "numpy.core.multiarray.scalar" || full == "numpy._core.multiarray.scalar")
    push(Callable::kScalar);
  else
    fail(fmt::format(
        "the pickle calls '{}'; only NumPy arrays of whole numbers are accepted, and nothing is executed",
        full));
}

void PickleCalls::reduce() {
  const auto& arguments = as<Sequence>(pop(), "a tuple of arguments").items;
  const auto function = as<Callable>(pop(), "a function");
  if (arguments.size() > kMostArguments)
    fail(fmt::format("a call with {} arguments; those of a batch of images have {} at most", arguments.size(),
                     kMostArguments));
  push(made_by(function, arguments));
}

PickleValue PickleCalls::made_by(Callable function, const std::vector<ValueId>& arguments) {
  switch (function) {
    case Callable::kReconstruct:
      return ArrayValue{};
    case Callable::kDtype:
      return dtype_called(arguments.empty() ? "" : string_of(arguments[0]));
    case Callable::kBytes:  // of no bytes
      if (!arguments.empty()) fail("bytes are made of something");
      return Bytes{};
    case Callable::kFromBuffer:  // (bytes, dtype, shape, order)
      if (arguments.size() != 4) fail("an array of a buffer has four parts");
      return array_of(arguments[2], arguments[1], string_of(arguments[3]) == "F", arguments[0]);
    case Callable::kScalar: {  // (dtype, bytes)
      if (arguments.size() != 2) fail("a number of NumPy has two parts");
      const DtypeValue dtype = as<DtypeValue>(arguments[0], "a dtype");
      const std::string& bytes = as<Bytes>(arguments[1], "the bytes of a number").bytes;
      if (bytes.size() != dtype.size) fail("a number of another size than its dtype");
      return integer_of_bytes(bytes, dtype.is_signed, dtype.is_big_endian);
    }
    case Callable::kEncode:
      return encoded(arguments);
    case Callable::kArray:
      break;
  }
  fail("numpy.ndarray is called, which no pickle of an array does");
}

DtypeValue PickleCalls::dtype_called(std::string_view code) const {
  for (const char size : {'1', '2', '4', '8'})
    if (code == std::string{'u', size} || code == std::string{'i', size})
      return {.size = static_cast<size_t>(size - '0'), .is_signed = code[0] == 'i'};
  fail(fmt::format("an array of '{}'; only whole numbers ('u1', 'i8', ...) are accepted", shown(code)));
}

PickleValue PickleCalls::encoded(const std::vector<ValueId>& arguments) {
  if (arguments.size() != 2 || string_of(arguments[1]) != "latin1")
    fail("a string is encoded in another way than latin1");
  const std::string& text = as<Text>(arguments[0], "a text").utf8;
  charge(text.size());
  return Bytes{known(latin1_of_utf8(text), "a string of latin1")};
}

ArrayValue PickleCalls::array_of(ValueId shape, ValueId dtype, bool is_fortran, ValueId bytes) {
  ArrayValue array{.shape = {},
                   .bytes = bytes,
                   .dtype = as<DtypeValue>(dtype, "a dtype"),
                   .is_fortran = is_fortran,
                   .built = true};
  const auto& extents = as<Sequence>(shape, "a shape").items;
  if (extents.size() > kMostAxes)
    fail(fmt::format("an array of {} axes; NumPy's have {} at most", extents.size(), kMostAxes));
  charge(extents.size() * sizeof(int64_t));
  array.shape.reserve(extents.size());
  uint64_t count = array.dtype.size;
  for (const ValueId extent : extents) {
    const int64_t size = as<int64_t>(extent, "an extent");
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) fail("the shape of an array is impossible");
    array.shape.push_back(size);
  }
  if (const size_t given = as<Bytes>(bytes, "the bytes of an array").bytes.size(); given != count)
    fail(fmt::format("an array of {} bytes with {} bytes", count, given));
  return array;
}

void PickleCalls::build() {
  const ValueId state = pop();
  const ValueId target = top();
  const auto& parts = as<Sequence>(state, "a tuple").items;
  if (auto* dtype = std::get_if<DtypeValue>(&value(target))) {
    if (parts.size() < 2) fail("the state of a dtype names its byte order");
    dtype->is_big_endian = string_of(parts[1]) == ">";
    return;
  }
  as<ArrayValue>(target, "an array");
  if (parts.size() != 5) fail("the state of an array has five parts");
  value(target) = array_of(parts[1], parts[2], as<int64_t>(parts[3], "a flag") != 0, parts[4]);
}

}  // namespace mox::data::internal
