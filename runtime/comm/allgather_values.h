// What every rank gave, by rank: Communicator::allgather for numbers instead of text. Lengths may differ
// between ranks; T holds no pointers. All ranks call it; it waits for them, and throws what allgather throws.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/comm/communicator.h"

namespace mox {

template <typename T>
requires std::is_trivially_copyable_v<T> std::vector<std::vector<T>> allgather_values(
    Communicator& ranks, const std::vector<T>& own) {
  if (ranks.size() == 1) return {own};
  const std::string_view bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(T));
  std::vector<std::vector<T>> all;
  for (const std::string& text : ranks.allgather(bytes)) {
    std::vector<T>& theirs = all.emplace_back(text.size() / sizeof(T));
    if (!theirs.empty()) std::memcpy(theirs.data(), text.data(), text.size());
  }
  return all;
}

}  // namespace mox
