// The opcodes are those of Python's Lib/pickletools.py.
#include "moxing/formats/internal/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "moxing/formats/internal/pickle_input.h"
#include "moxing/formats/internal/pickle_text.h"
#include "moxing/formats/internal/pickle_value.h"
#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

class PickleReader : private PickleInput {
 public:
  using PickleInput::PickleInput;

  PickledBatch read() {
    read_header();
    while (step()) continue;
    if (!at_end()) fail("bytes follow the end of the pickle");
    if (stack_.size() != 1) fail("the pickle ends with more or less than one value");
    return batch_of(stack_.back());
  }

 private:
  template <typename T>
  T known(std::optional<T> value, const char* expected) const {
    if (!value) fail(fmt::format("{} is expected here", expected));
    return *std::move(value);
  }
  uint64_t key_line() { return known(integer_of(line()), "the number of an entry"); }
  int64_t long_integer(uint64_t size) {
    if (size > sizeof(int64_t)) fail(fmt::format("a whole number of {} bytes", size));
    return integer_of_bytes(text(size), true, false);
  }

  // Protocols 0 and 1 have none, and begin with their dictionary.
  void read_header() {
    const uint8_t first = byte();
    if (first == '(' || first == '}') return back_to_start();
    if (first != 0x80) fail("this is no pickle (it starts with 80, or with '(' or '}')");
    if (const uint8_t protocol = byte(); protocol > 5)
      fail(fmt::format("this is no pickle of protocols 0 to 5: it says {}", protocol));
  }

  // A value takes some sixty bytes, and one byte of a pickle can make one: the images, which are one value
  // each, are what such a file is large by.
  void require_room(size_t count) const {
    constexpr size_t kAlways = 1024, kBytesOfValue = 16;
    if (count >= kAlways + size() / kBytesOfValue)
      fail(fmt::format("the pickle has more than {} values in {} bytes, which no batch of images has", count,
                       size()));
  }
  void push(PickleValue value) {
    require_room(values_.size());
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<ValueId>(values_.size() - 1));
  }
  ValueId pop() {
    if (stack_.empty()) fail("the pickle takes a value from an empty stack");
    const ValueId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  ValueId top() {
    const ValueId id = pop();
    stack_.push_back(id);
    return id;
  }
  std::vector<ValueId> pop_to_mark() {
    std::vector<ValueId> items;
    for (ValueId id = pop(); !std::holds_alternative<Mark>(values_[id]); id = pop()) items.push_back(id);
    std::reverse(items.begin(), items.end());
    return items;
  }
  template <typename T>
  T& as(ValueId id, const char* expected) {
    T* value = std::get_if<T>(&values_[id]);
    if (!value) fail(fmt::format("{} is expected here", expected));
    return *value;
  }

  void append(std::vector<ValueId> items) {
    auto& list = as<Sequence>(top(), "a list");
    if (list.is_tuple) fail("a tuple cannot be appended to");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void set_items(std::vector<ValueId> items) {
    if (items.size() % 2 != 0) fail("a key without a value");
    auto& dictionary = as<Dictionary>(top(), "a dictionary");
    dictionary.items.insert(dictionary.items.end(), items.begin(), items.end());
  }
  void make_tuple(size_t size) {
    Sequence tuple{std::vector<ValueId>(size), true};
    for (size_t i = size; i-- > 0;) tuple.items[i] = pop();
    push(std::move(tuple));
  }

  void remember(uint64_t key) {
    require_room(memo_.size());
    memo_[key] = top();
  }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail(fmt::format("the memo has no entry {}", key));
    stack_.push_back(found->second);
  }

  void push_callable(const std::string& module, const std::string& name) {
    const std::string full = module + "." + name;
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

  void reduce() {
    const std::vector<ValueId> arguments = as<Sequence>(pop(), "a tuple of arguments").items;
    switch (as<Callable>(pop(), "a function")) {
      case Callable::kReconstruct:
        push(ArrayValue{});
        return;
      case Callable::kDtype: {
        std::string code;
        if (!arguments.empty()) code = string_of(arguments[0]);
        push(dtype_called(code));
        return;
      }
      case Callable::kBytes:  // of no bytes
        if (!arguments.empty()) fail("bytes are made of something");
        push(Bytes{});
        return;
      case Callable::kFromBuffer: {  // (bytes, dtype, shape, order)
        if (arguments.size() != 4) fail("an array of a buffer has four parts");
        push(array_of(arguments[2], arguments[1], string_of(arguments[3]) == "F", arguments[0]));
        return;
      }
      case Callable::kScalar: {  // (dtype, bytes)
        if (arguments.size() != 2) fail("a number of NumPy has two parts");
        const DtypeValue dtype = as<DtypeValue>(arguments[0], "a dtype");
        const std::string& bytes = as<Bytes>(arguments[1], "the bytes of a number").bytes;
        if (bytes.size() != dtype.size) fail("a number of another size than its dtype");
        push(integer_of_bytes(bytes, dtype.is_signed, dtype.is_big_endian));
        return;
      }
      case Callable::kEncode:
        if (arguments.size() != 2 || string_of(arguments[1]) != "latin1")
          fail("a string is encoded in another way than latin1");
        push(Bytes{known(latin1_of_utf8(as<Text>(arguments[0], "a text").utf8), "a string of latin1")});
        return;
      case Callable::kArray:
        fail("numpy.ndarray is called, which no pickle of an array does");
    }
  }

  DtypeValue dtype_called(const std::string& code) const {
    for (const char size : {'1', '2', '4', '8'})
      if (code == std::string{'u', size} || code == std::string{'i', size})
        return {.size = static_cast<size_t>(size - '0'), .is_signed = code[0] == 'i'};
    fail(fmt::format("an array of '{}'; only whole numbers ('u1', 'i8', ...) are accepted", code));
  }

  ArrayValue array_of(ValueId shape, ValueId dtype, bool is_fortran, ValueId bytes) {
    ArrayValue array{.shape = {},
                     .bytes = bytes,
                     .dtype = as<DtypeValue>(dtype, "a dtype"),
                     .is_fortran = is_fortran,
                     .built = true};
    uint64_t count = array.dtype.size;
    for (ValueId extent : as<Sequence>(shape, "a shape").items) {
      const int64_t size = as<int64_t>(extent, "an extent");
      if (size < 0 || __builtin_mul_overflow(count, size, &count))
        fail("the shape of an array is impossible");
      array.shape.push_back(size);
    }
    if (const size_t given = as<Bytes>(bytes, "the bytes of an array").bytes.size(); given != count)
      fail(fmt::format("an array of {} bytes with {} bytes", count, given));
    return array;
  }

  // The state of an array: (version, shape, dtype, is Fortran order, bytes); of a dtype: (version, byte
  // order,
  // ...).
  void build() {
    const ValueId state = pop();
    const ValueId target = top();
    const auto& parts = as<Sequence>(state, "a tuple").items;
    if (auto* dtype = std::get_if<DtypeValue>(&values_[target])) {
      if (parts.size() < 2) fail("the state of a dtype names its byte order");
      dtype->is_big_endian = string_of(parts[1]) == ">";
      return;
    }
    as<ArrayValue>(target, "an array");
    if (parts.size() != 5) fail("the state of an array has five parts");
    values_[target] = array_of(parts[1], parts[2], as<int64_t>(parts[3], "a flag") != 0, parts[4]);
  }

  std::string string_of(ValueId id) const {
    if (const auto* text = std::get_if<Text>(&values_[id])) return text->utf8;
    if (const auto* bytes = std::get_if<Bytes>(&values_[id])) return bytes->bytes;
    return "";
  }

  // Carries out one instruction; false for the last.
  bool step() {
    const uint8_t code = byte();
    switch (code) {
      case '.':
        return false;
      case '(':
        push(Mark{});
        break;
      case '}':
        push(Dictionary{});
        break;
      case ']':
        push(Sequence{});
        break;
      case ')':
        push(Sequence{{}, true});
        break;
      case 0x85:
      case 0x86:
      case 0x87:
        make_tuple(code - 0x84u);
        break;
      case 't':
        push(Sequence{pop_to_mark(), true});
        break;
      case 'N':
        push(Nothing{});
        break;
      case 0x88:
      case 0x89:
        push(int64_t{code == 0x88});
        break;
      case 'K':
        push(static_cast<int64_t>(number(1)));
        break;
      case 'M':
        push(static_cast<int64_t>(number(2)));
        break;
      case 'J':
        push(int64_t{static_cast<int32_t>(number(4))});
        break;
      case 'U':
        push(Bytes{text(number(1))});
        break;
      case 'T':
        push(Bytes{text(number(4))});
        break;
      case 'X':
        push(Text{text(number(4))});
        break;
      case 'q':
        remember(number(1));
        break;
      case 'r':
        remember(number(4));
        break;
      case 'h':
        recall(number(1));
        break;
      case 'j':
        recall(number(4));
        break;
      case 'a':
        append({pop()});
        break;
      case 'e':
        append(pop_to_mark());
        break;
      case 's': {
        const ValueId value = pop(), key = pop();
        set_items({key, value});
        break;
      }
      case 'u':
        set_items(pop_to_mark());
        break;
      case 'c': {
        const std::string module = line(), name = line();
        push_callable(module, name);
        break;
      }
      case 0x93: {
        const ValueId name = pop(), module = pop();
        push_callable(string_of(module), string_of(name));
        break;
      }
      default:
        if (!step_of_other_protocols(code))
          fail(fmt::format("instruction {:#04x} does not belong to a pickle of CIFAR", code));
        break;
      case 'R':
        reduce();
        break;
      case 'b':
        build();
        break;
    }
    return true;
  }

  // What protocol 2 does not write: lines of protocols 0 and 1, sizes and frames of 3 to 5.
  bool step_of_other_protocols(uint8_t code) {
    switch (code) {
      case 'd': {
        Dictionary dictionary{pop_to_mark()};
        if (dictionary.items.size() % 2 != 0) fail("a key without a value");
        push(std::move(dictionary));
        return true;
      }
      case 'l':
        push(Sequence{pop_to_mark()});
        return true;
      case 'I':
      case 'L':
        push(known(integer_of(line()), "a whole number"));
        return true;
      case 'F':
        line();
        push(Nothing{});  // a real number, which nothing asks for
        return true;
      case 'G':
        number(8);
        push(Nothing{});
        return true;
      case 'S':
        push(Bytes{known(bytes_of_repr(line()), "a string in quotes")});
        return true;
      case 'V':
        push(Text{known(utf8_of_raw_unicode(line()), "a text")});
        return true;
      case 'p':
        remember(key_line());
        return true;
      case 'g':
        recall(key_line());
        return true;
      case 0x8a:
        push(long_integer(number(1)));
        return true;
      case 0x8b:
        push(long_integer(number(4)));
        return true;
      case 'C':
        push(Bytes{text(number(1))});
        return true;
      case 'B':
        push(Bytes{text(number(4))});
        return true;
      case 0x8e:  // bytes
      case 0x96:  // a bytearray
        push(Bytes{text(number(8))});
        return true;
      case 0x8c:
        push(Text{text(number(1))});
        return true;
      case 0x8d:
        push(Text{text(number(8))});
        return true;
      case 0x94:
        remember(memo_.size());
        return true;
      case 0x95:  // a frame, of so many bytes
        number(8);
        return true;
      default:
        return false;
    }
  }

  void take_array(const std::string& key, const ArrayValue& array, PickledBatch* batch) const {
    const std::string& bytes = std::get<Bytes>(values_[array.bytes]).bytes;
    const DtypeValue dtype = array.dtype;
    if (array.shape.size() == 1)
      for (size_t at = 0; at < bytes.size(); at += dtype.size)
        batch->lists[key].push_back(integer_of_bytes(std::string_view(bytes).substr(at, dtype.size),
                                                     dtype.is_signed, dtype.is_big_endian));
    if (dtype.size != 1 || dtype.is_signed) return;
    std::string row_major = bytes;
    if (array.is_fortran && array.shape.size() > 1 && !bytes.empty()) {
      if (array.shape.size() != 2) fail("an array of more than two axes in Fortran's order");
      const size_t rows = array.shape[0], columns = array.shape[1];
      for (size_t row = 0; row < rows; ++row)
        for (size_t column = 0; column < columns; ++column)
          row_major[row * columns + column] = bytes[column * rows + row];
    }
    batch->arrays[key] = {array.shape, std::move(row_major)};
  }

  // Only the last value of a key is copied: one value may stand under many keys.
  PickledBatch batch_of(ValueId id) {
    const auto& items = as<Dictionary>(id, "a dictionary").items;
    std::map<std::string, ValueId> wanted{{"data", kNone}, {"labels", kNone}, {"fine_labels", kNone}};
    for (size_t i = 0; i < items.size(); i += 2)
      if (const auto found = wanted.find(string_of(items[i])); found != wanted.end())
        found->second = items[i + 1];
    PickledBatch batch;
    for (const auto& [key, value] : wanted) {
      if (value == kNone) continue;
      if (const auto* array = std::get_if<ArrayValue>(&values_[value]); array && array->built) {
        take_array(key, *array, &batch);
      } else if (const auto* list = std::get_if<Sequence>(&values_[value])) {
        for (ValueId item : list->items) batch.lists[key].push_back(as<int64_t>(item, "a list of integers"));
      }
    }
    return batch;
  }

  static constexpr ValueId kNone = ~ValueId{0};

  std::vector<PickleValue> values_;
  std::vector<ValueId> stack_;
  std::map<uint64_t, ValueId> memo_;
};

}  // namespace

PickledBatch read_pickle(std::span<const std::byte> content, const std::string& name) {
  return PickleReader(content, name).read();
}

}  // namespace mox::data::internal
