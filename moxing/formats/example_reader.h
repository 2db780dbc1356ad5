// The features of a tf.Example where they stand in a record: nothing is copied, since the lists of protocol
// buffers take up to forty times what they take in the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/function_ref.h"

namespace mox::data::internal {

struct ExampleFeature {
  enum class Kind { kNothing, kBytes, kFloats, kIntegers };

  std::string_view name;
  Kind kind = Kind::kNothing;
  size_t count = 0;  // of its values

  // Each value in its order. For the feature's own kind only.
  void for_each_bytes(FunctionRef<void(std::string_view)> take) const;
  void for_each_float(FunctionRef<void(float)> take) const;
  void for_each_integer(FunctionRef<void(int64_t)> take) const;

  // Where its lists stand, of which there may be as many as fit; those before `first_list` count no more.
  std::span<const std::byte> entry;
  size_t first_list = 0;
};

// Calls `take` for each feature of the record; of those of one name the last counts. False if the bytes are
// no tf.Example, perhaps after some of its features. Takes what the parser of protocol buffers takes, but for
// tags beyond 32 bits.
bool for_each_feature(std::span<const std::byte> record, FunctionRef<void(const ExampleFeature&)> take);

}  // namespace mox::data::internal
