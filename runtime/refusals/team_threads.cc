#include "runtime/refusals/team_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"

namespace mox::internal {
namespace {

// Of the calling thread's pool, which libgomp keeps from team to team. A smaller team may have sent some of
// them home since; their places are what counts.
thread_local int kept_threads = 0;

}  // namespace

void require_team_threads(int teams, int size) {
  const int wanted = teams * (size - 1);
  const GivenThreads given = threads_given(wanted);
  const int there = given.count + std::min(kept_threads, size - 1);
  if (there < wanted)
    throw FailedPrecondition(fmt::format(
        "{} threads compute beside {}, but the system has refused number {}: {}. Raise the limits on "
        "processes and memory (ulimit -u, ulimit -v, the control group's pids.max), or set a lower "
        "value of threads",
        wanted, teams == 1 ? "the first" : "those of the devices", there + 1, given.refusal));
}

// A team of one computes on the thread itself, and leaves the pool as it is.
void note_team_threads(int size) {
  if (size > 1) kept_threads = size - 1;
}

void start_team(const Team& team) {
  if (team.size() == 1) return;
  if (kept_threads < team.size() - 1) {
    // One at a time: two that ask together would each be given the other's.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    require_team_threads(1, team.size());
    team.on_each_thread([] {});
  }
  note_team_threads(team.size());
}

}  // namespace mox::internal
