// SIGINT and SIGTERM as a wish to stop: the run finishes its step, saves, and ends.
#pragma once

namespace mox::internal {

// While alive, the first SIGINT or SIGTERM of the process is remembered instead of ending it; a second one ends it as
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
