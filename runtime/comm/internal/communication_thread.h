// What drives the operations of a communicator that are under way: a thread of its own does it while all
// others compute; a thread that waits does it itself, so that no thread has to wake another one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/internal/giving_way.h"

namespace mox {

class Communicator::Pending {
 public:
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<Operation> operation;
  std::string what;
  std::function<void()> done;
  std::vector<Transport::Request> requests;  // of the current phase
  Clock::time_point waits_since, reported;   // in the current phase; not set before the first look in vain
  // Guarded by the thread's mutex, as all below:
  std::vector<int> missing;  // when it was reported last, in the current phase
  Clock::time_point missing_since;
  bool finished = false;
  std::exception_ptr error;

  enum class State { kWaiting, kMoved, kFinished };

  // Works on the operation as far as it goes with what `transport` has moved. `sent` grows by the messages
  // that have left.
  State advance(Transport& transport, Work& sent);
};

// Threads: all functions from any thread, `run` from one at a time.
class Communicator::Thread {
 public:
  explicit Thread(std::unique_ptr<Transport> transport);
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // Ends what is under way; whoever waits gets an IoError. When it returns, nobody is at work on an operation
  // any more.
  void stop();
  // Starts the operation.
  void add(std::shared_ptr<Pending> pending);
  // Starts the operation and waits for it; the thread need not even wake.
  void run(const std::shared_ptr<Pending>& pending);
  // Returns when the operation is finished; rethrows its error.
  void wait(Pending& pending);

  std::optional<Wait> longest_wait();
  void set_stall_listener(StallListener listener);
  // What the thread itself has done.
  Work work();

 private:
  void drive_to_end(Pending& pending);
  bool is_over(const Pending& pending);
  void loop();
  bool drive(Work& sent);
  bool finish_if_possible(Pending& pending, Work& sent, bool& moved);
  bool finish(Pending& pending, const std::exception_ptr& error);
  void went_on(Pending& pending);
  void report_stall(Pending& pending);

  std::unique_ptr<Transport> transport_;
  std::mutex driving_;  // held by the thread that works on operations; guards transport_ and active_
  std::list<std::shared_ptr<Pending>> active_;
  internal::GivingWay giving_way_;  // of the threads that wait
  std::mutex mutex_;                // guards all that follows; taken after driving_
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Pending>> added_;
  bool under_way_ = false;               // active_ is not empty
  std::vector<const Pending*> blocked_;  // of the threads in `wait` and in blocking calls
  bool stop_ = false;
  StallListener listener_;
  std::atomic<int64_t> messages_sent_ = 0, bytes_sent_ = 0;  // while thread_ drove
  std::thread thread_;                                       // last: it uses the others
};

}  // namespace mox
