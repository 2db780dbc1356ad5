#include "runtime/replicas/sleeping_teams.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "runtime/base/resource_limits.h"
#include "runtime/base/team.h"

namespace mox {
namespace {

bool user_says_how_to_wait() {
  return std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
}

}  // namespace

// A thread whose libgomp pool has more threads than the machine has cores, all asleep until it ends.
class SleepingTeams::IdlePool {
 public:
  explicit IdlePool(int threads) : thread_([this, threads] { hold(threads); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_held_; });
  }
  ~IdlePool() {
    {
      std::lock_guard lock(mutex_);
      end_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  IdlePool(const IdlePool&) = delete;
  IdlePool& operator=(const IdlePool&) = delete;

 private:
  void hold(int threads) {
    Team(threads).on_each_thread([] {});
    std::unique_lock lock(mutex_);
    is_held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return end_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false, end_ = false;
  std::thread thread_;  // last: it uses the others
};

SleepingTeams::SleepingTeams() {
  if (user_says_how_to_wait()) return;
  // Of the machine rather than of the process: libgomp compares with the cores that the process had when it
  // began, which are no more.
  const int cores = ::sysconf(_SC_NPROCESSORS_CONF);
  if (threads_given(cores + 2).refusal.empty()) pool_ = std::make_unique<IdlePool>(cores + 1);
}

SleepingTeams::~SleepingTeams() = default;

}  // namespace mox
