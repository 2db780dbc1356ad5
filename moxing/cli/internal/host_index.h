// Which of a list's hosts have a name. A table of its own, of two bytes for a host: the library's has thirty
// and more, for names that a file may write with two.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/cli/internal/host_slots.h"

namespace mox::cli {

class HostIndex {
 public:
  // For lists of up to `most` hosts, kMostHosts at most.
  explicit HostIndex(size_t most) : table_(std::bit_ceil(std::min(most, kMostHosts) + 1), kNone) {}

  // The number of the host `name` among those that were added, whose names are `name_of(NUMBER)`; what has
  // the name next, `added`, where there is none, which is added then.
  template <typename NameOf>
  size_t find_or_add(std::string_view name, size_t added, NameOf&& name_of) {
    size_t place = std::hash<std::string_view>()(name) % table_.size();
    while (table_[place] != kNone && name_of(table_[place]) != name) place = (place + 1) % table_.size();
    if (table_[place] == kNone) table_[place] = static_cast<uint16_t>(added);
    return table_[place];
  }

 private:
  static constexpr uint16_t kNone = std::numeric_limits<uint16_t>::max();
  static_assert(kMostHosts < kNone);
  std::vector<uint16_t> table_;
};

}  // namespace mox::cli
