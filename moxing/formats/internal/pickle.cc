// The opcodes are those of Python's Lib/pickletools.py.
#include "moxing/formats/internal/pickle.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "moxing/formats/internal/pickle_calls.h"
#include "moxing/formats/internal/pickle_text.h"

namespace mox::data::internal {
namespace {

class PickleReader : private PickleCalls {
 public:
  using PickleCalls::PickleCalls;

  PickledBatch read(std::string_view labels) {
    read_header();
    while (step()) continue;
    if (!at_end()) fail("bytes follow the end of the pickle");
    return batch_of(only_value(), labels);
  }

 private:
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
        const std::string_view module = line(), name = line();
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
        remember_next();
        return true;
      case 0x95:  // a frame, of so many bytes
        number(8);
        return true;
      default:
        return false;
    }
  }

  PickledArray images_of(const ArrayValue& array) const {
    const std::string& bytes = std::get<Bytes>(value(array.bytes)).bytes;
    std::string row_major = bytes;
    if (array.is_fortran && array.shape.size() > 1 && !bytes.empty()) {
      if (array.shape.size() != 2) fail("an array of more than two axes in Fortran's order");
      const size_t rows = array.shape[0], columns = array.shape[1];
      for (size_t row = 0; row < rows; ++row)
        for (size_t column = 0; column < columns; ++column)
          row_major[row * columns + column] = bytes[column * rows + row];
    }
    return {array.shape, std::move(row_major)};
  }

  std::vector<int64_t> numbers_of(const ArrayValue& array) const {
    const std::string_view bytes = std::get<Bytes>(value(array.bytes)).bytes;
    const DtypeValue dtype = array.dtype;
    std::vector<int64_t> numbers;
    numbers.reserve(bytes.size() / dtype.size);
    for (size_t at = 0; at < bytes.size(); at += dtype.size)
      numbers.push_back(integer_of_bytes(bytes.substr(at, dtype.size), dtype.is_signed, dtype.is_big_endian));
    return numbers;
  }

  std::vector<int64_t> numbers_of(const Sequence& list) {
    std::vector<int64_t> numbers;
    numbers.reserve(list.items.size());
    for (const ValueId item : list.items) numbers.push_back(as<int64_t>(item, "a list of integers"));
    return numbers;
  }

  const ArrayValue* array_at(ValueId id) const {
    const auto* array = id == kNone ? nullptr : std::get_if<ArrayValue>(&value(id));
    return array && array->built ? array : nullptr;
  }

  // Only the last value of a key is copied: one value may stand under many keys.
  PickledBatch batch_of(ValueId id, std::string_view labels_key) {
    const auto& items = as<Dictionary>(id, "a dictionary").items;
    ValueId data = kNone, labels = kNone;
    for (size_t i = 0; i < items.size(); i += 2) {
      const std::string_view key = string_of(items[i]);
      if (key == "data") data = items[i + 1];
      if (key == labels_key) labels = items[i + 1];
    }
    PickledBatch batch;
    if (const ArrayValue* array = array_at(data); array && array->dtype.size == 1 && !array->dtype.is_signed)
      batch.data = images_of(*array);
    if (const ArrayValue* array = array_at(labels); array && array->shape.size() == 1)
      batch.labels = numbers_of(*array);
    else if (const auto* list = labels == kNone ? nullptr : std::get_if<Sequence>(&value(labels)))
      batch.labels = numbers_of(*list);
    return batch;
  }

  static constexpr ValueId kNone = ~ValueId{0};
};

}  // namespace

PickledBatch read_pickle(std::span<const std::byte> content, std::string_view labels,
                         const std::string& name) {
  return PickleReader(content, name).read(labels);
}

}  // namespace mox::data::internal
