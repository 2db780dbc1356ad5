// What every rank gave, by rank: Communicator::allgather and allgather_equal for numbers instead of text. T
// holds no pointers. All ranks call it; it waits for them, and throws what they throw, and DataError for
// bytes that are no whole number of values.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/comm/communicator.h"

namespace mox {

namespace internal {

template <typename T>
std::string_view bytes_of_values(const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<std::vector<T>> values_of_ranks(const std::vector<std::string>& texts) {
  std::vector<std::vector<T>> all;
  for (const std::string& text : texts) {
    if (text.size() % sizeof(T) != 0)
      throw DataError("rank " + std::to_string(all.size()) + " gave " + std::to_string(text.size()) +
                      " bytes, which are no values of " + std::to_string(sizeof(T)));
    std::vector<T>& theirs = all.emplace_back(text.size() / sizeof(T));
    if (!theirs.empty()) std::memcpy(theirs.data(), text.data(), text.size());
  }
  return all;
}

}  // namespace internal

// Lengths may differ between ranks, which tell them first.
template <typename T>
std::vector<std::vector<T>> allgather_values(Communicator& ranks, const std::vector<T>& own) {
  if (ranks.size() == 1) return {own};
  return internal::values_of_ranks<T>(ranks.allgather(internal::bytes_of_values(own)));
}

// Values of one length everywhere: ranks wait for each other once, not twice.
template <typename T>
std::vector<std::vector<T>> allgather_equal_values(Communicator& ranks, const std::vector<T>& own) {
  if (ranks.size() == 1) return {own};
  return internal::values_of_ranks<T>(ranks.allgather_equal(internal::bytes_of_values(own)));
}

}  // namespace mox
