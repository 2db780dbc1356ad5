// The bytes of a pickle, from the first to the last.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace mox::data::internal {

class PickleInput {
 public:
  // `name` is the file's, for messages, and outlives this.
  PickleInput(std::span<const std::byte> content, const std::string& name) : content_(content), name_(name) {}

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
  // Without its end, as long as the content lives.
  std::string_view line() {
    const size_t begin = at_;
    while (byte() != '\n') continue;
    return {reinterpret_cast<const char*>(content_.data()) + begin, at_ - 1 - begin};
  }
  void back_to_start() { at_ = 0; }
  bool at_end() const { return at_ == content_.size(); }
  size_t size() const { return content_.size(); }

 private:
  std::span<const std::byte> content_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace mox::data::internal
