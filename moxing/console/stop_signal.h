// SIGINT, SIGTERM, SIGHUP and SIGUSR1 as a wish to stop: the run finishes its step, saves, and ends.
#pragma once

#include <atomic>
#include <string_view>

namespace mox::internal {

// While alive, the first SIGINT, SIGTERM, SIGHUP (a connection to a terminal that is dropped) or SIGUSR1 of
// the process is remembered instead of ending it. A second SIGINT or SIGTERM ends it as usual; the other two
// may be repeated, as launchers do. A SIGHUP that is ignored (nohup) stays so. One at a time.
//
// `others_go_on`: other processes of the job may still save when this one is through, and the end of one by a
// signal ends all. So those two, which launchers send to each process and repeat, do nothing to it from then
// on, unless it has a handler of its own.
class StopSignal {
 public:
  explicit StopSignal(bool others_go_on = false);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // What is left can wait for another time: from here on a SIGINT (Ctrl-C) has its usual effect again, the
  // first one, too.
  void let_interrupts_end() const;

  int received() const;                  // the signal's number, or 0
  const std::atomic<int>& wish() const;  // the same number, for Interruptible
  std::string_view name() const;         // "SIGTERM"; "" if none was received

 private:
  const bool others_go_on_;
};

}  // namespace mox::internal
