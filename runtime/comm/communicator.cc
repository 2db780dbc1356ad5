#include "runtime/comm/communicator.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/comm/internal/collectives.h"

namespace mox {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at operations under way while all other threads compute: polling without a pause would take a core
// from them, and so does polling often while another rank is late.
constexpr std::chrono::microseconds kShortestPause(25), kLongestPause(500);
constexpr auto kStallReportInterval = std::chrono::milliseconds(100);

// In a real-time class, a thread that wakes waits for the time slice of one that computes with the same priority, 100 ms; so
// there the calling thread takes the next higher one. Where it has not the right to, all stays as it is.
void run_before_computing_threads() {
  int policy = SCHED_OTHER;
  sched_param parameters{};
  if (pthread_getschedparam(pthread_self(), &policy, &parameters) != 0) return;
  if (policy != SCHED_FIFO && policy != SCHED_RR) return;
  ++parameters.sched_priority;
  pthread_setschedparam(pthread_self(), policy, &parameters);
}

}  // namespace

class Communicator::Pending {
 public:
  std::unique_ptr<Operation> operation;
  std::string what;
  std::function<void()> done;
  std::vector<Transport::Request> requests;  // of the current phase
  Clock::time_point started, reported;
  // Guarded by the thread's mutex, as all below:
  std::vector<int> missing;  // when it was reported last
  Clock::time_point waited_since;
  bool finished = false;
  std::exception_ptr error;

  enum class State { kWaiting, kMoved, kFinished };

  // Works on the operation as far as it goes with what `transport` has moved. `sent` grows by the messages that have left.
  State advance(Transport& transport, Work& sent) {
    std::erase_if(requests, [&](const Transport::Request& request) {
      if (!transport.test(request)) return false;
      if (request.bytes_sent > 0) ++sent.messages_sent;
      sent.bytes_sent += static_cast<int64_t>(request.bytes_sent);
      return true;
    });
    if (!requests.empty()) return State::kWaiting;
    if (operation->advance(transport, requests)) return State::kMoved;
    if (done) done();
    return State::kFinished;
  }
};

// Drives the operations under way: a thread of its own does it while all others compute; a thread that waits does it itself,
// so that no thread has to wake another one.
class Communicator::Thread {
 public:
  explicit Thread(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), thread_([this] { loop(); }) {}
  ~Thread() { stop(); }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    std::lock_guard driving(driving_);  // nobody is at work on an operation any more
  }

  void add(std::shared_ptr<Pending> pending) {
    {
      std::lock_guard lock(mutex_);
      added_.push_back(std::move(pending));
    }
    wake_.notify_one();
  }

  // Starts the operation and waits for it; the thread need not even wake.
  void run(std::shared_ptr<Pending> pending) {
    {
      std::lock_guard lock(mutex_);
      blocked_.push_back(pending.get());
      added_.push_back(pending);
    }
    drive_to_end(*pending);
  }

  void wait(Pending& pending) {
    {
      std::lock_guard lock(mutex_);
      blocked_.push_back(&pending);
    }
    drive_to_end(pending);
  }

  std::optional<Wait> longest_wait() {
    std::lock_guard lock(mutex_);
    const Pending* longest = nullptr;
    for (const Pending* pending : blocked_)
      if (!pending->finished && !pending->missing.empty() &&
          (!longest || pending->waited_since < longest->waited_since))
        longest = pending;
    if (!longest) return std::nullopt;
    const std::chrono::duration<double> waited = Clock::now() - longest->waited_since;
    return Wait{longest->what, longest->missing, waited.count()};
  }

  void set_stall_listener(StallListener listener) {
    std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }

  Work work() {
    Work work{.messages_sent = messages_sent_.load(std::memory_order_relaxed),
              .bytes_sent = bytes_sent_.load(std::memory_order_relaxed)};
    clockid_t clock{};
    timespec spent{};
    if (pthread_getcpuclockid(thread_.native_handle(), &clock) == 0 && clock_gettime(clock, &spent) == 0)
      work.processor_seconds = static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
    return work;
  }

 private:
  // `pending` is one of blocked_, and no longer after this.
  void drive_to_end(Pending& pending) {
    while (!is_over(pending)) {
      bool moved = false;
      {
        std::lock_guard driving(driving_);
        Work sent;  // by another thread than the communication thread: not its work
        moved = drive(sent);
      }
      if (!moved) sched_yield();
    }
    std::unique_lock lock(mutex_);
    blocked_.erase(std::ranges::find(blocked_, &pending));
    if (blocked_.empty() && (under_way_ || !added_.empty())) wake_.notify_one();
    if (!pending.finished) throw IoError("the communication between the ranks has ended");
    if (pending.error) std::rethrow_exception(pending.error);
  }

  bool is_over(const Pending& pending) {
    std::lock_guard lock(mutex_);
    return pending.finished || stop_;
  }

  void loop() {
    run_before_computing_threads();
    auto pause = kShortestPause;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || (blocked_.empty() && (!added_.empty() || under_way_)); });
        if (stop_) return;
      }
      bool moved = false;
      {
        std::lock_guard driving(driving_);
        Work sent;
        moved = drive(sent);
        messages_sent_.fetch_add(sent.messages_sent, std::memory_order_relaxed);
        bytes_sent_.fetch_add(sent.bytes_sent, std::memory_order_relaxed);
      }
      pause = moved ? kShortestPause : std::min(pause * 2, kLongestPause);
      if (moved) continue;
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, pause, [&] { return stop_ || !added_.empty(); })) pause = kShortestPause;
    }
  }

  // Works on all operations as far as they go without waiting; whether one of them went on. The caller holds `driving_`.
  bool drive(Work& sent) {
    {
      std::lock_guard lock(mutex_);
      if (stop_) return false;
      std::move(added_.begin(), added_.end(), std::back_inserter(active_));
      added_.clear();
    }
    bool moved = false;
    std::exception_ptr broken;
    try {
      transport_->progress();
    } catch (...) {
      broken = std::current_exception();
    }
    active_.remove_if([&](const auto& pending) {
      if (broken) return finish(*pending, broken);
      return finish_if_possible(*pending, sent, moved);
    });
    std::lock_guard lock(mutex_);
    under_way_ = !active_.empty();
    return moved;
  }

  bool finish_if_possible(Pending& pending, Work& sent, bool& moved) {
    std::exception_ptr error;
    try {
      const auto state = pending.advance(*transport_, sent);
      if (state == Pending::State::kWaiting) report_stall(pending);
      moved |= state != Pending::State::kWaiting;
      if (state != Pending::State::kFinished) return false;
    } catch (...) {
      error = std::current_exception();
    }
    return finish(pending, error);
  }

  bool finish(Pending& pending, const std::exception_ptr& error) {
    std::lock_guard lock(mutex_);
    pending.finished = true;
    pending.error = error;
    return true;
  }

  void report_stall(Pending& pending) {
    const auto now = Clock::now();
    if (pending.started == Clock::time_point()) pending.started = pending.reported = now;
    if (now - pending.reported < kStallReportInterval) return;
    pending.reported = now;
    std::vector<int> missing;
    for (const Transport::Request& request : pending.requests) missing.push_back(request.peer);
    std::ranges::sort(missing);
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    StallListener listener;
    {
      std::lock_guard lock(mutex_);
      pending.missing = missing;
      pending.waited_since = pending.started;
      listener = listener_;
    }
    if (listener)
      listener(pending.what, missing, std::chrono::duration<double>(now - pending.started).count());
  }

  std::unique_ptr<Transport> transport_;
  std::mutex driving_;  // held by the thread that works on operations; guards transport_ and active_
  std::list<std::shared_ptr<Pending>> active_;
  std::mutex mutex_;  // guards all that follows; taken after driving_
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Pending>> added_;
  bool under_way_ = false;               // active_ is not empty
  std::vector<const Pending*> blocked_;  // of the threads in `wait` and in blocking calls
  bool stop_ = false;
  StallListener listener_;
  std::atomic<int64_t> messages_sent_ = 0, bytes_sent_ = 0;  // while thread_ drove
  std::thread thread_;                                       // last: it uses the others
};

Communicator::Communicator() : Communicator(std::move(make_thread_transports(1)[0])) {}

Communicator::Communicator(std::unique_ptr<Transport> transport, std::string host)
    : rank_(transport->rank()), size_(transport->size()) {
  if (size_ > 1) {
    thread_ = std::make_unique<Thread>(std::move(transport));
  } else {
    alone_ = std::move(transport);
  }
  exchange_hosts(host);
}

Communicator::~Communicator() = default;

void Communicator::exchange_hosts(const std::string& host) {
  hosts_ = allgather(host);
  local_size_ = local_rank_ = 0;
  for (int r = 0; r < size_; ++r) {
    if (this->host(r) != host) continue;
    ++local_size_;
    if (r < rank_) ++local_rank_;
  }
}

std::shared_ptr<Communicator::Pending> Communicator::start(std::unique_ptr<Operation> operation,
                                                           std::string what, std::function<void()> done) {
  auto pending = std::make_shared<Pending>();
  pending->operation = std::move(operation);
  pending->what = std::move(what);
  pending->done = std::move(done);
  if (thread_) {
    thread_->add(pending);
    return pending;
  }
  Work sent;
  auto state = Pending::State::kMoved;
  while (state == Pending::State::kMoved) state = pending->advance(*alone_, sent);
  MOX_ASSERT(state == Pending::State::kFinished, "an operation of one rank waits for nobody");
  return pending;
}

void Communicator::wait(const std::shared_ptr<Pending>& pending) {
  if (thread_) thread_->wait(*pending);
}

void Communicator::abandon() {
  if (thread_) thread_->stop();
}

void Communicator::set_stall_listener(StallListener listener) {
  if (thread_) thread_->set_stall_listener(std::move(listener));
}

Communicator::Work Communicator::work() const { return thread_ ? thread_->work() : Work(); }

std::optional<Communicator::Wait> Communicator::longest_wait() const {
  return thread_ ? thread_->longest_wait() : std::nullopt;
}

void Communicator::run(std::unique_ptr<Operation> operation, std::string what) {
  if (!thread_) {
    start(std::move(operation), std::move(what));
    return;
  }
  auto pending = std::make_shared<Pending>();
  pending->operation = std::move(operation);
  pending->what = std::move(what);
  thread_->run(std::move(pending));
}

void Communicator::barrier() { run(internal::make_barrier(), "barrier"); }

void Communicator::broadcast(std::span<std::byte> data, int root) {
  if (root < 0 || root >= size_)
    throw InvalidArgument("broadcast: rank " + std::to_string(root) + " is none of the " +
                          std::to_string(size_) + " ranks");
  run(internal::make_broadcast(data, root), "broadcast");
}

std::string Communicator::broadcast_text(std::string_view text, int root) {
  uint64_t length = text.size();
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  std::string result(rank_ == root ? text : std::string_view());
  result.resize(length);
  broadcast(std::as_writable_bytes(std::span(result)), root);
  return result;
}

std::vector<std::string> Communicator::allgather_equal(std::string_view data) {
  std::vector<std::string> results(static_cast<size_t>(size_));
  run(make_allgather(std::as_bytes(std::span(data)), &results), "allgather");
  return results;
}

std::vector<std::string> Communicator::allgather(std::string_view data) {
  const uint64_t length = data.size();
  const auto lengths = allgather_equal({reinterpret_cast<const char*>(&length), sizeof length});
  std::vector<std::string> results(lengths.size());
  for (size_t r = 0; r < results.size(); ++r) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, lengths[r].data(), sizeof bytes);
    results[r].resize(bytes);
  }
  run(internal::make_allgather_of_known_lengths(std::as_bytes(std::span(data)), &results), "allgather");
  return results;
}

void Communicator::allreduce(std::span<float> values) {
  run(make_tree_sum({.leaves = size_,
                     .elements = static_cast<int64_t>(values.size()),
                     .partial_sums = {values.data()},
                     .result = values.data()}),
      "allreduce");
}

namespace {

template <typename T>
void sum_gathered(Communicator& communicator, std::span<T> values) {
  const auto bytes = std::as_bytes(values);
  auto parts = communicator.allgather_equal({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<PartialSum<T*>> stack;
  for (int64_t r = 0; r < communicator.size(); ++r)
    push_partial_sum(communicator.size(), stack,
                     {{r, r + 1}, reinterpret_cast<T*>(parts[static_cast<size_t>(r)].data())},
                     [&](T* left, const T* right) {
                       for (size_t i = 0; i < values.size(); ++i) left[i] += right[i];
                     });
  if (!values.empty()) std::memcpy(values.data(), stack[0].value, values.size_bytes());
}

}  // namespace

void Communicator::allreduce(std::span<double> values) { sum_gathered(*this, values); }
void Communicator::allreduce(std::span<int64_t> values) { sum_gathered(*this, values); }

}  // namespace mox
