#include "runtime/replicas/core_contention.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/seconds.h"

namespace mox::internal {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
constexpr double kBusyPerSecond = 30;   // switches: contended from here on
constexpr double kQuietPerSecond = 10;  // and no longer when below, for as many periods one after the other:
constexpr int kQuietPeriods = 20;

}  // namespace

ThreadSwitches own_switches() {
  rusage usage{};
  return {.thread = ::gettid(), .switches = ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0};
}

bool CoreContention::is_due(Clock::time_point now) const { return !since_ || now - *since_ >= kPeriod; }

void CoreContention::look(Clock::time_point now, std::span<const ThreadSwitches> all) {
  if (!is_due(now)) return;
  int64_t most = 0;
  for (const ThreadSwitches& one : all) {
    const auto [known, is_new] = switches_.try_emplace(one.thread, one.switches);
    most = std::max(most, one.switches - known->second);
    known->second = one.switches;
  }
  const auto before = std::exchange(since_, now);
  if (!before) return;
  const double rate = most / in_seconds(now - *before);
  if (teams_) {
    quiet_periods_ = rate < kQuietPerSecond ? quiet_periods_ + 1 : 0;
    if (quiet_periods_ >= kQuietPeriods) teams_.reset();
    return;
  }
  if (rate < kBusyPerSecond) return;
  quiet_periods_ = 0;
  teams_.emplace();
  if (is_said_) return;
  is_said_ = true;
  log_info(
      fmt::format("other work uses these cores: the system has put a computing thread aside {:.0f} times "
                  "a second. Until that ends, threads that wait for each other sleep instead of looking. "
                  "Cores of its own, or fewer threads (threads), make the steps faster",
                  rate));
}

}  // namespace mox::internal
