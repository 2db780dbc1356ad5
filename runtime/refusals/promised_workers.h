// The threads of oneTBB that an arena may use under a limit on threads.
//
// oneTBB makes a thread when there is work for it, in a place that nothing guards, so that a refusal ends the
// process; and it keeps them all, asleep, for the arenas to come. So an arena is promised what the system
// gives when it is asked, and where that is too little, what sleeps and is promised to nobody else.
#pragma once

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <string>

namespace mox::internal {

// Of one arena. Any thread.
class PromisedWorkers {
 public:
  // `own_threads`: that are asked for, too, since the arena has them beside its workers.
  explicit PromisedWorkers(int wanted, int own_threads);
  ~PromisedWorkers();
  PromisedWorkers(const PromisedWorkers&) = delete;
  PromisedWorkers& operator=(const PromisedWorkers&) = delete;

  int count() const { return count_; }                     // at most `wanted`
  const std::string& refusal() const { return refusal_; }  // why there are no more; "" if there are all

 private:
  int count_ = 0;
  std::string refusal_;
};

// Keeps account of the threads of oneTBB that take part in the arena.
class WorkerCount : public tbb::task_scheduler_observer {
 public:
  explicit WorkerCount(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) { observe(true); }
  ~WorkerCount() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override;
};

}  // namespace mox::internal
