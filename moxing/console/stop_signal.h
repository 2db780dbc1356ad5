// SIGINT, SIGTERM and SIGUSR1 as a wish to stop: the run finishes its step, saves, and ends.
#pragma once

#include <string_view>

namespace mox::internal {

// While alive, the first SIGINT, SIGTERM or SIGUSR1 of the process is remembered instead of ending it; a
// second one of the same kind ends it as usual. One at a time.
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
