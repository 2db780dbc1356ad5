// SIGINT, SIGTERM and SIGUSR1 as a wish to stop: the run finishes its step, saves, and ends.
#pragma once

namespace mox::internal {

// While alive, the first of these signals that the process gets is remembered instead of ending it; a second one ends it as
// usual. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  int received() const;  // the signal's number, or 0
};

}  // namespace mox::internal
