#include "runtime/replicas/core_contention.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "runtime/base/log.h"

namespace mox::internal {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
constexpr double kBusyPerSecond = 30;   // switches: contended from here on
constexpr double kQuietPerSecond = 10;  // and no longer when below, for as many periods one after the other:
constexpr int kQuietPeriods = 20;

int64_t involuntary_switches() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

void CoreContention::look() {
  const auto now = Clock::now();
  if (!since_ || now - *since_ >= kPeriod) look(now, involuntary_switches());
}

void CoreContention::look(Clock::time_point now, int64_t switches) {
  if (!since_) {
    since_ = now;
    switches_ = switches;
    return;
  }
  if (now - *since_ < kPeriod) return;
  const double rate = (switches - switches_) / std::chrono::duration<double>(now - *since_).count();
  since_ = now;
  switches_ = switches;
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
