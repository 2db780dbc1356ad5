#include "runtime/replicas/short_turns.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>

namespace mox::internal {
namespace {

constexpr uint64_t kShortTurn = 100'000;  // ns

// The kernel's struct sched_attr in its first version, for which glibc has no name before 2.41.
struct SchedulingAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

std::optional<SchedulingAttributes> attributes() {
  SchedulingAttributes found{};
  if (::syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) != 0) return std::nullopt;
  return found;
}

// `runtime` 0: the system's own.
void set_turns(uint64_t runtime) {
  auto wanted = attributes();
  if (!wanted || (wanted->policy != SCHED_OTHER && wanted->policy != SCHED_BATCH)) return;
  wanted->size = sizeof *wanted;
  wanted->runtime = runtime;
  wanted->deadline = wanted->period = 0;
  ::syscall(SYS_sched_setattr, 0, &*wanted, 0);
}

}  // namespace

void take_short_turns() { set_turns(kShortTurn); }

void take_usual_turns() { set_turns(0); }

bool has_short_turns() { return length_of_turns() == std::chrono::nanoseconds(kShortTurn); }

std::chrono::nanoseconds length_of_turns() {
  const auto found = attributes();
  return std::chrono::nanoseconds(found ? found->runtime : 0);
}

}  // namespace mox::internal
