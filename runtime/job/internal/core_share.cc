#include "runtime/job/internal/core_share.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// Those of `allowed` at [first, last), counted from 0.
cpu_set_t cores_at(const cpu_set_t& allowed, int first, int last) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (seen >= first && seen < last) CPU_SET(core, &cores);
    ++seen;
  }
  return cores;
}

}  // namespace

std::string RankCores::to_bytes() const {
  std::string bytes(sizeof allowed + sizeof quota, '\0');
  std::memcpy(bytes.data(), &allowed, sizeof allowed);
  std::memcpy(bytes.data() + sizeof allowed, &quota, sizeof quota);
  return bytes + kernel + '\n' + machine;
}

RankCores RankCores::from_bytes(const std::string& bytes) {
  RankCores result;
  const size_t fixed = sizeof result.allowed + sizeof result.quota;
  const size_t end = bytes.find('\n', std::min(fixed, bytes.size()));
  MOX_ASSERT(bytes.size() >= fixed && end != std::string::npos, "ranks of one build exchange their cores");
  std::memcpy(&result.allowed, bytes.data(), sizeof result.allowed);
  std::memcpy(&result.quota, bytes.data() + sizeof result.allowed, sizeof result.quota);
  result.kernel = bytes.substr(fixed, end - fixed);
  result.machine = bytes.substr(end + 1);
  return result;
}

cpu_set_t share_of_cores(std::span<const RankCores> ranks, int own) {
  const RankCores& self = ranks[own];
  int sharers = 0, place = 0, of_machine = 0;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const RankCores& other = ranks[rank];
    if (other.machine == self.machine) ++of_machine;
    if (other.kernel != self.kernel || !CPU_EQUAL(&other.allowed, &self.allowed)) continue;
    if (rank < own) ++place;
    ++sharers;
  }
  const int cores = CPU_COUNT(&self.allowed);
  if (cores == 0) return self.allowed;
  int first = int64_t{place} * cores / sharers;
  first = std::min(first, cores - 1);
  int last = std::max(first + 1, static_cast<int>((int64_t{place} + 1) * cores / sharers));
  if (self.quota > 0)
    last = std::min(last,
                    first + std::max(1, static_cast<int>(std::ceil(std::min(self.quota, 1e6) / of_machine))));
  return cores_at(self.allowed, first, last);
}

}  // namespace mox::internal
