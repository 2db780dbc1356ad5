#include "runtime/replicas/lane_threads.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/resource_limits.h"
#include "runtime/refusals/team_threads.h"
#include "runtime/replicas/short_turns.h"

namespace mox::internal {
namespace {

// The `lane`-th group of `cores` cores of `allowed`.
cpu_set_t cores_of_lane(const cpu_set_t& allowed, int lane, int cores) {
  cpu_set_t result;
  CPU_ZERO(&result);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (seen >= lane * cores && seen < (lane + 1) * cores) CPU_SET(core, &result);
    ++seen;
  }
  return result;
}

void bind_thread(const cpu_set_t& cores) { sched_setaffinity(0, sizeof cores, &cores); }

// The calling thread on these cores, for as long as this lives; without any, where it was.
class BoundThread {
 public:
  explicit BoundThread(const cpu_set_t* cores) {
    CPU_ZERO(&before_);
    is_bound_ = cores && affinity_of_thread(std::as_writable_bytes(std::span(&before_, 1)));
    if (is_bound_) bind_thread(*cores);
  }
  ~BoundThread() {
    if (is_bound_) bind_thread(before_);
  }
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  cpu_set_t before_;
  bool is_bound_ = false;
};

// The team's threads, but not the calling one.
void bind_others(const Team& team, const cpu_set_t& cores) {
  if (team.size() == 1) return;
  const pthread_t self = pthread_self();
  team.on_each_thread([&] {
    if (pthread_equal(pthread_self(), self) == 0) bind_thread(cores);
  });
}

}  // namespace

LaneThreads::LaneThreads(int lanes, const Team& team)
    : team_(team), had_short_turns_(has_short_turns()), errors_(lanes) {
  is_known_ = affinity_of_thread(std::as_writable_bytes(std::span(&allowed_, 1)));
  is_bound_ = lanes > 1 && is_known_ && CPU_COUNT(&allowed_) >= int64_t{lanes} * team.size();
  try {
    for (int lane = 1; lane < lanes; ++lane) start(lane);
    if (is_bound_) first_cores_ = cores_of_lane(allowed_, 0, team.size());
    if (waits_for_others()) start_teams(lanes);
    if (is_bound_) bind_others(team_, first_cores_);
  } catch (...) {
    stop();
    throw;
  }
}

LaneThreads::~LaneThreads() {
  stop();
  if (waits_for_others() && !had_short_turns_) team_.on_each_thread([] { take_usual_turns(); });
  if (is_bound_ || is_on_one_core_) bind_others(team_, allowed_);
}

// They begin here, while what was asked for is still there: others start threads, too.
void LaneThreads::start_teams(int lanes) {
  require_team_threads(lanes, team_.size());
  run([this](int) { team_.on_each_thread([] { take_short_turns(); }); });
  note_team_threads(team_.size());
}

void LaneThreads::start(int lane) {
  const auto start_one = [&] { threads_.emplace_back([this, lane] { loop(lane); }); };
  try {
    try {
      start_one();
    } catch (const std::system_error&) {
      if (threads_given(1).count == 0) throw;
      start_one();  // it was the place of a thread that had just ended
    }
  } catch (const std::system_error& error) {
    throw FailedPrecondition(
        fmt::format("the {} lanes of a process need a thread each, but the system has refused thread {}: {}. "
                    "Raise the limits on processes and memory (ulimit -u, ulimit -v, the control group's "
                    "pids.max), or set a lower num_devices",
                    errors_.size(), lane + 1, error.code().message()));
  }
  if (!is_bound_) return;
  const cpu_set_t own = cores_of_lane(allowed_, lane, team_.size());
  pthread_setaffinity_np(threads_.back().native_handle(), sizeof own, &own);
}

void LaneThreads::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LaneThreads::run(FunctionRef<void(int)> body) {
  if (!waits_for_others()) return run_on_all(body);
  look_at_other_work();
  const auto begin = CoreTrial::Clock::now();
  run_on_all(body);
  trial_.note_step(CoreTrial::Clock::now() - begin);
}

void LaneThreads::run_on_all(FunctionRef<void(int)> body) {
  if (threads_.empty()) {
    if (const std::exception_ptr error = run_first(body)) std::rethrow_exception(error);
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
  const std::exception_ptr own = run_first(body);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return running_ == 0; });
  errors_[0] = own;
  for (const auto& error : errors_)
    if (error) std::rethrow_exception(error);
}

void LaneThreads::look_at_other_work() {
  const auto now = CoreContention::Clock::now();
  if (contention_.is_due(now)) contention_.look(now, switches());
  if (size() > 1 || !is_known_) return;
  const bool one_core = trial_.takes_one_core(now, contention_.is_noticed());
  if (one_core == is_on_one_core_) return;
  const int core = one_core ? sched_getcpu() : 0;
  if (core < 0 || core >= CPU_SETSIZE) return;
  is_on_one_core_ = one_core;
  CPU_ZERO(&first_cores_);
  CPU_SET(core, &first_cores_);
  bind_others(team_, one_core ? first_cores_ : allowed_);
}

std::vector<ThreadSwitches> LaneThreads::switches() {
  std::mutex mutex;
  std::vector<ThreadSwitches> all;
  all.reserve(size() * team_.size());
  run_on_all([&](int) {
    team_.on_each_thread([&] {
      const ThreadSwitches own = own_switches();
      const std::lock_guard lock(mutex);
      all.push_back(own);
    });
  });
  return all;
}

std::exception_ptr LaneThreads::run_first(FunctionRef<void(int)> body) {
  // Only meanwhile: the threads that the caller starts between two runs would inherit these cores.
  const BoundThread bound(is_bound_ || is_on_one_core_ ? &first_cores_ : nullptr);
  try {
    body(0);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void LaneThreads::loop(int lane) {
  team_.enter();
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
    errors_[lane] = error;
    if (--running_ == 0) finished_.notify_one();
  }
}

}  // namespace mox::internal
