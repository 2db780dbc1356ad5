#include "moxing/internal/lane_threads.h"

#include <pthread.h>
#include <sched.h>

namespace mox::internal {
namespace {

// The `lane`-th group of `cores` cores of `allowed`, or none if there are not as many.
bool cores_of_lane(const cpu_set_t& allowed, int lane, int cores, cpu_set_t* result) {
  CPU_ZERO(result);
  int seen = 0, taken = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (seen >= lane * cores && seen < (lane + 1) * cores) {
      CPU_SET(core, result);
      ++taken;
    }
    ++seen;
  }
  return taken == cores;
}

}  // namespace

LaneThreads::LaneThreads(int lanes, const Team& team) : errors_(static_cast<size_t>(lanes)) {
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  for (int lane = 1; lane < lanes; ++lane) {
    threads_.emplace_back([this, lane, &team] { loop(lane, team); });
    // Lane 0 is not bound: the threads that it starts later would all inherit its cores.
    cpu_set_t own;
    if (known && cores_of_lane(allowed, lane, team.size(), &own))
      pthread_setaffinity_np(threads_.back().native_handle(), sizeof own, &own);
  }
}

LaneThreads::~LaneThreads() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LaneThreads::run(FunctionRef<void(int)> body) {
  if (threads_.empty()) {
    body(0);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    ++round_;
    running_ = static_cast<int>(threads_.size());
    for (auto& error : errors_) error = nullptr;
  }
  start_.notify_all();
  std::exception_ptr own;
  try {
    body(0);
  } catch (...) {
    own = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return running_ == 0; });
  errors_[0] = own;
  for (const auto& error : errors_)
    if (error) std::rethrow_exception(error);
}

void LaneThreads::loop(int lane, const Team& team) {
  team.enter();
  int64_t done = 0;
  for (;;) {
    FunctionRef<void(int)>* body = nullptr;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || round_ > done; });
      if (stop_) return;
      done = round_;
      body = body_;
    }
    std::exception_ptr error;
    try {
      (*body)(lane);
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    errors_[static_cast<size_t>(lane)] = error;
    if (--running_ == 0) finished_.notify_one();
  }
}

}  // namespace mox::internal
