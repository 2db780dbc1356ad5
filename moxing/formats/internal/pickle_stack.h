// What the stack machine of a pickle works on: its values, the stack of them, and the memo. What a pickle can
// make of them is bounded by its size.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "moxing/formats/internal/pickle_input.h"
#include "moxing/formats/internal/pickle_value.h"

namespace mox::data::internal {

class PickleStack : protected PickleInput {
 protected:
  using PickleInput::PickleInput;

  template <typename T>
  T known(std::optional<T> value, const char* expected) const {
    if (!value) fail(fmt::format("{} is expected here", expected));
    return *std::move(value);
  }
  template <typename T>
  T& as(ValueId id, const char* expected) {
    T* value = std::get_if<T>(&values_[id]);
    if (!value) fail(fmt::format("{} is expected here", expected));
    return *value;
  }
  PickleValue& value(ValueId id) { return values_[id]; }
  const PickleValue& value(ValueId id) const { return values_[id]; }
  // Of a text or bytes, until it is changed; "" of other values.
  std::string_view string_of(ValueId id) const {
    if (const auto* text = std::get_if<Text>(&values_[id])) return text->utf8;
    if (const auto* bytes = std::get_if<Bytes>(&values_[id])) return bytes->bytes;
    return "";
  }

  // What is not read from the pickle itself, but made by one of its calls, which has five bytes: Python 3
  // writes the bytes of protocols 0 to 2 as a text of at most two bytes each, and has it encoded.
  void charge(size_t bytes) {
    constexpr size_t kAlways = 4096, kTimes = 2;
    made_ += bytes;
    if (made_ > kAlways + kTimes * size())
      fail(fmt::format(
          "the pickle's calls make more than {} times its {} bytes, which no batch of images does", kTimes,
          size()));
  }

  // References to other values remain what they are.
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
  // The value that is left at the end, without what it is no longer needed with.
  ValueId only_value() {
    if (stack_.size() != 1) fail("the pickle ends with more or less than one value");
    memo_.clear();
    return std::exchange(stack_, {}).back();
  }

  void remember(uint64_t key) {
    require_room(memo_.size());
    memo_[key] = top();
  }
  void remember_next() { remember(memo_.size()); }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail(fmt::format("the memo has no entry {}", key));
    stack_.push_back(found->second);
  }

 private:
  // A value takes some sixty bytes, and one byte of a pickle can make one: the images, which are one value
  // each, are what such a file is large by.
  void require_room(size_t count) const {
    constexpr size_t kAlways = 256, kBytesOfValue = 16;
    if (count >= kAlways + size() / kBytesOfValue)
      fail(fmt::format("the pickle has more than {} values in {} bytes, which no batch of images has", count,
                       size()));
  }

  std::deque<PickleValue> values_;
  std::vector<ValueId> stack_;
  std::map<uint64_t, ValueId> memo_;
  size_t made_ = 0;
};

}  // namespace mox::data::internal
