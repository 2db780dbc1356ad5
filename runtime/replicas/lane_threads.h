// The lanes of a process: lane 0 is the calling thread, the others are threads that wait for
// work. See placement.h.
#pragma once

#include <sched.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/team.h"
#include "runtime/replicas/core_contention.h"
#include "runtime/replicas/core_trial.h"

namespace mox::internal {

class LaneThreads {
 public:
  // The caller has entered `team`, which is the size of every lane's. Each of several lanes is bound to cores
  // of its own, as many as `team` has threads, if the caller may use enough for all of them; otherwise none
  // is bound. A single lane is kept on one core while other work has its cores and that is faster
  // (core_trial.h). Where there are several threads they have short turns (short_turns.h) while this lives.
  // Throws FailedPrecondition if the system does not let the process have so many threads.
  LaneThreads(int lanes, const Team& team);
  // Of the thread that has made it.
  ~LaneThreads();
  LaneThreads(const LaneThreads&) = delete;
  LaneThreads& operator=(const LaneThreads&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  // body(lane) on every lane at the same time; returns when all have returned. Of several exceptions that of
  // the lowest lane is rethrown. The calling thread is bound to its lane's cores while its body runs, and may
  // use what it could before afterwards.
  void run(FunctionRef<void(int lane)> body);

 private:
  void start(int lane);
  void start_teams(int lanes);
  // Whether a thread of these ever waits for another one.
  bool waits_for_others() const { return team_.size() > 1 || errors_.size() > 1; }
  void stop();
  void run_on_all(FunctionRef<void(int)> body);
  std::exception_ptr run_first(FunctionRef<void(int)> body);
  void look_at_other_work();
  std::vector<ThreadSwitches> switches();
  void loop(int lane);

  const Team team_;
  const bool had_short_turns_;  // of others of the same thread, which outlive this
  CoreContention contention_;
  CoreTrial trial_;
  bool is_known_ = false;            // which cores the caller may use
  bool is_bound_ = false;            // whether lanes have some of them
  bool is_on_one_core_ = false;      // the only lane
  cpu_set_t allowed_, first_cores_;  // of all lanes, where known; of lane 0, where bound or on one core
  std::mutex mutex_;
  std::condition_variable start_, finished_;
  FunctionRef<void(int)>* body_ = nullptr;  // guarded by mutex_, as all below
  int64_t round_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

}  // namespace mox::internal
