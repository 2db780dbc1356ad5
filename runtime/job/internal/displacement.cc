#include "runtime/job/internal/displacement.h"

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"

namespace mox::internal {

size_t most_strangers(rlim_t may_be_open) {
  constexpr rlim_t kMost = 1024;
  return static_cast<size_t>(std::clamp<rlim_t>(may_be_open / 4, 1, kMost));
}

size_t whom_to_displace(std::span<const uint32_t> sources, std::minstd_rand& chance) {
  MOX_ASSERT(!sources.empty(), "there is somebody to displace");
  std::vector<uint32_t> sorted(sources.begin(), sources.end());
  std::ranges::sort(sorted);
  size_t most = 0;
  std::vector<uint32_t> crowds;  // the addresses that have so many, in order
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = std::upper_bound(begin, sorted.end(), *begin);
    const auto count = static_cast<size_t>(end - begin);
    if (count > most) crowds.clear();
    most = std::max(most, count);
    if (count == most) crowds.push_back(*begin);
    begin = end;
  }
  size_t left = std::uniform_int_distribution<size_t>(0, most * crowds.size() - 1)(chance);
  for (size_t i = 0; i < sources.size(); ++i)
    if (std::ranges::binary_search(crowds, sources[i]) && left-- == 0) return i;
  return 0;  // not reached: so many come from the crowds
}

}  // namespace mox::internal
