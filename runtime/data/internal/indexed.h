// Elements that are reached by position alone: the pure, random-access half of the algebra. Immutable and
// safe to use from several threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/data/internal/leaf.h"

namespace mox::data::internal {

inline constexpr uint64_t kEndless = UINT64_MAX;

class Indexed {
 public:
  Indexed(uint64_t size, int arity) : size_(size), arity_(arity) {}
  virtual ~Indexed() = default;

  uint64_t size() const { return size_; }  // elements of a pass, or kEndless
  int arity() const { return arity_; }     // leaves of an element

  // Sets the leaves of elements [first, first + count) of pass `epoch`: element i's are out[i * stride +
  // 0 .. arity).
  virtual void resolve(uint64_t epoch, uint64_t first, uint64_t count, Leaf* out, size_t stride) const = 0;

 private:
  uint64_t size_;
  int arity_;
};

}  // namespace mox::data::internal
