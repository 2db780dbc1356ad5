// Memory for numbers that vectors load: it starts on a 64-byte boundary, only grows, and
// is never uninitialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mox::image::internal {

template <typename Number>
class AlignedBuffer {
 public:
  // At least `count` numbers: some that were there before, or 0.
  Number* take(size_t count) {
    constexpr size_t kBoundary = 64;
    if (memory_.size() < count + kBoundary / sizeof(Number)) {
      memory_.assign(count + kBoundary / sizeof(Number), 0);
      const auto past = reinterpret_cast<uintptr_t>(memory_.data()) % kBoundary;
      start_ = past == 0 ? 0 : (kBoundary - past) / sizeof(Number);
    }
    return data();
  }
  Number* data() { return memory_.data() + start_; }
  const Number* data() const { return memory_.data() + start_; }

 private:
  std::vector<Number> memory_;
  size_t start_ = 0;
};

}  // namespace mox::image::internal
