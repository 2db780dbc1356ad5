#include "runtime/refusals/promised_workers.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>

#include "runtime/base/resource_limits.h"

namespace mox::internal {
namespace {

// Of a millisecond. A thread of oneTBB looks for work for some time before it sleeps, 0.1 s on busy cores.
constexpr int kWaitsForSleep = 1000;

// Of all arenas of the process.
struct Account {
  std::mutex mutex;
  std::set<pid_t> workers;  // that oneTBB has
  int promised = 0;

  static Account& of_process() {
    static Account* const account = new Account;  // there for good: a thread of oneTBB may end after main
    return *account;
  }
};

class CountedWorker {
 public:
  CountedWorker() {
    const std::lock_guard lock(account_.mutex);
    account_.workers.insert(number_);
  }
  ~CountedWorker() {
    const std::lock_guard lock(account_.mutex);
    account_.workers.erase(number_);
  }
  CountedWorker(const CountedWorker&) = delete;
  CountedWorker& operator=(const CountedWorker&) = delete;

 private:
  Account& account_ = Account::of_process();
  const pid_t number_ = ::gettid();
};

// "7 (name) S ...", of a name that may hold anything.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
}

}  // namespace

// One that has not fallen asleep yet would not be taken: oneTBB would make another.
PromisedWorkers::PromisedWorkers(int wanted, int own_threads) {
  Account& account = Account::of_process();
  const std::lock_guard lock(account.mutex);
  const int there = static_cast<int>(account.workers.size());
  const int to_come = std::max(account.promised - there, 0), spare = std::max(there - account.promised, 0);
  const int asked = to_come + wanted + own_threads;
  const GivenThreads given = threads_given(asked);
  count_ = std::clamp(wanted - (asked - given.count), 0, wanted);
  const int more = std::min(wanted - count_, spare);
  for (int waits = 0; more > 0 && waits < kWaitsForSleep; ++waits) {
    // Those that are awake are then within what others were promised.
    if (std::ranges::count_if(account.workers, is_asleep) >= spare) {
      count_ += more;
      break;
    }
    ::usleep(1000);
  }
  if (count_ < wanted) refusal_ = given.refusal;
  account.promised += count_;
}

PromisedWorkers::~PromisedWorkers() {
  Account& account = Account::of_process();
  const std::lock_guard lock(account.mutex);
  account.promised -= count_;
}

void WorkerCount::on_scheduler_entry(bool is_worker) {
  if (!is_worker) return;
  thread_local const CountedWorker counted;
}

}  // namespace mox::internal
