// The opcodes are those of Python's Lib/pickletools.py.
#include "moxing/formats/internal/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "moxing/formats/internal/pickle_value.h"
#include "runtime/base/error.h"

namespace mox::data::internal {
namespace {

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> content, const std::string& name)
      : content_(content), name_(name) {}

  PickledBatch read() {
    if (byte() != 0x80 || byte() != 2) fail("this is no pickle of protocol 2 (it starts with 80 02)");
    while (step()) continue;
    if (at_ != content_.size()) fail("bytes follow the end of the pickle");
    if (stack_.size() != 1) fail("the pickle ends with more or less than one value");
    return batch_of(stack_.back());
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("'{}', offset {}: {}", name_, at_, what));
  }

  uint8_t byte() {
    if (at_ == content_.size()) fail("the pickle is cut off");
    return std::to_integer<uint8_t>(content_[at_++]);
  }
  uint64_t number(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint64_t{byte()} << (8 * i);
    return value;
  }
  std::string text(uint64_t size) {
    if (size > content_.size() - at_)
      fail(fmt::format("a string of {} bytes does not fit into the {} that are left", size,
                       content_.size() - at_));
    std::string result(reinterpret_cast<const char*>(content_.data()) + at_, size);
    at_ += size;
    return result;
  }
  std::string line() {
    std::string result;
    for (char letter; (letter = static_cast<char>(byte())) != '\n';) result += letter;
    return result;
  }

  void push(PickleValue value) {
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

  void remember(uint64_t key) { memo_[key] = top(); }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail(fmt::format("the memo has no entry {}", key));
    stack_.push_back(found->second);
  }

  void push_callable() {
    const std::string module = line(), name = line();
    const std::string full = module + "." + name;
    if (full == "numpy.core.multiarray._reconstruct" || full == "numpy._core.multiarray._reconstruct")
      push(Callable::kReconstruct);
    else if (full == "numpy.ndarray")
      push(Callable::kArray);
    else if (full == "numpy.dtype")
      push(Callable::kDtype);
    else if (full == "_codecs.encode")
      push(Callable::kEncode);
    else
      fail(fmt::format(
          "the pickle calls '{}'; only NumPy arrays of uint8 are accepted, and nothing is executed", full));
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
        if (code != "u1") fail(fmt::format("an array of '{}'; only uint8 ('u1') is accepted", code));
        push(DtypeValue{});
        return;
      }
      case Callable::kEncode:
        if (arguments.size() != 2 || string_of(arguments[1]) != "latin1")
          fail("a string is encoded in another way than latin1");
        push(Bytes{latin1(as<Text>(arguments[0], "a text").utf8)});
        return;
      case Callable::kArray:
        fail("numpy.ndarray is called, which no pickle of an array does");
    }
  }

  // The state of an array: (version, shape, dtype, is Fortran order, bytes).
  void build() {
    const ValueId state = pop();
    const ValueId target = top();
    if (std::holds_alternative<DtypeValue>(values_[target]))
      return;  // byte order and the like: uint8 has none
    as<ArrayValue>(target, "an array");
    const auto& parts = as<Sequence>(state, "a tuple").items;
    if (parts.size() != 5) fail("the state of an array has five parts");
    if (!std::holds_alternative<DtypeValue>(values_[parts[2]])) fail("an array without its dtype");
    if (as<int64_t>(parts[3], "a flag") != 0) fail("an array in Fortran's order");
    ArrayValue array;
    array.built = true;
    array.bytes = parts[4];
    uint64_t count = 1;
    for (ValueId extent : as<Sequence>(parts[1], "a shape").items) {
      const int64_t size = as<int64_t>(extent, "an extent");
      if (size < 0 || __builtin_mul_overflow(count, size, &count))
        fail("the shape of an array is impossible");
      array.shape.push_back(size);
    }
    if (const size_t given = as<Bytes>(array.bytes, "the bytes of an array").bytes.size(); given != count)
      fail(fmt::format("an array of {} elements with {} bytes", count, given));
    values_[target] = std::move(array);
  }

  std::string string_of(ValueId id) const {
    if (const auto* text = std::get_if<Text>(&values_[id])) return text->utf8;
    if (const auto* bytes = std::get_if<Bytes>(&values_[id])) return bytes->bytes;
    return "";
  }

  std::string latin1(const std::string& utf8) const {
    std::string result;
    for (size_t i = 0; i < utf8.size(); ++i) {
      const auto lead = static_cast<uint8_t>(utf8[i]);
      if (lead < 0x80) {
        result += utf8[i];
        continue;
      }
      if ((lead != 0xc2 && lead != 0xc3) || i + 1 == utf8.size() ||
          (static_cast<uint8_t>(utf8[i + 1]) & 0xc0) != 0x80)
        fail("a string of bytes holds what is not latin1");
      result += static_cast<char>((lead & 3) << 6 | (static_cast<uint8_t>(utf8[++i]) & 0x3f));
    }
    return result;
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
      case 'c':
        push_callable();
        break;
      case 'R':
        reduce();
        break;
      case 'b':
        build();
        break;
      default:
        fail(fmt::format("instruction {:#04x} does not belong to a pickle of CIFAR", code));
    }
    return true;
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
        batch.arrays[key] = {array->shape, std::get<Bytes>(values_[array->bytes]).bytes};
      } else if (const auto* list = std::get_if<Sequence>(&values_[value])) {
        for (ValueId item : list->items) batch.lists[key].push_back(as<int64_t>(item, "a list of integers"));
      }
    }
    return batch;
  }

  static constexpr ValueId kNone = ~ValueId{0};

  std::span<const std::byte> content_;
  const std::string& name_;
  size_t at_ = 0;
  std::vector<PickleValue> values_;
  std::vector<ValueId> stack_;
  std::map<uint64_t, ValueId> memo_;
};

}  // namespace

PickledBatch read_pickle(std::span<const std::byte> content, const std::string& name) {
  return PickleReader(content, name).read();
}

}  // namespace mox::data::internal
