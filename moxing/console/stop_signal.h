// SIGINT, SIGTERM, SIGHUP and SIGUSR1 as a wish to stop: the run finishes its step, saves, and ends.
#pragma once

#include <string_view>

namespace mox::internal {

// While alive, the first SIGINT, SIGTERM, SIGHUP (a connection to a terminal that is dropped) or SIGUSR1 of
// the process is remembered instead of ending it. A second SIGINT or SIGTERM ends it as usual; the other two
// may be repeated, as launchers do. A SIGHUP that is ignored (nohup) stays so. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  int received() const;           // the signal's number, or 0
  std::string_view name() const;  // "SIGTERM"; "" if none was received
};

}  // namespace mox::internal
