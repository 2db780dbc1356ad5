// What every rank gave, by rank: Communicator::allgather for numbers instead of text. Lengths may differ
// between ranks; T holds no pointers. All ranks call it; it waits for them, and throws what allgather throws,
// and DataError for bytes that are no whole number of values.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/comm/communicator.h"

namespace mox {

template <typename T>
std::vector<std::vector<T>> allgather_values(Communicator& ranks, const std::vector<T>& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (ranks.size() == 1) return {own};
  const std::string_view bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(T));
  std::vector<std::vector<T>> all;
  for (const std::string& text : ranks.allgather(bytes)) {
    if (text.size() % sizeof(T) != 0)
      throw DataError("rank " + std::to_string(all.size()) + " gave " + std::to_string(text.size()) +
                      " bytes, which are no values of " + std::to_string(sizeof(T)));
    std::vector<T>& theirs = all.emplace_back(text.size() / sizeof(T));
    if (!theirs.empty()) std::memcpy(theirs.data(), text.data(), text.size());
  }
  return all;
}

}  // namespace mox
