#include "runtime/comm/communicator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
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
// from them. While somebody waits, there is no pause.
constexpr auto kPollInterval = std::chrono::microseconds(50);
constexpr auto kStallReportInterval = std::chrono::milliseconds(100);

}  // namespace

class Communicator::Pending {
 public:
  std::unique_ptr<Operation> operation;
  std::string what;
  std::function<void()> done;
  std::vector<Transport::Request> requests;  // of the current phase
  Clock::time_point started, reported;
  bool finished = false;  // guarded by the thread's mutex, as error
  std::exception_ptr error;

  // Works on the operation as far as it goes without waiting; true when it is finished.
  bool advance(Transport& transport) {
    for (;;) {
      std::erase_if(requests, [&](const Transport::Request& request) { return transport.test(request); });
      if (!requests.empty()) return false;
      if (!operation->advance(transport, requests)) break;
    }
    if (done) done();
    return true;
  }
};

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
    finished_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void add(std::shared_ptr<Pending> pending) {
    {
      std::lock_guard lock(mutex_);
      added_.push_back(std::move(pending));
    }
    wake_.notify_one();
  }

  void wait(Pending& pending) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    wake_.notify_one();
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return pending.finished || stop_; });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    if (!pending.finished) throw IoError("the communication between the ranks has ended");
    if (pending.error) std::rethrow_exception(pending.error);
  }

  void set_stall_listener(StallListener listener) {
    std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }

 private:
  void loop() {
    std::list<std::shared_ptr<Pending>> active;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (active.empty()) wake_.wait(lock, [&] { return stop_ || !added_.empty(); });
        if (stop_) return;
        std::move(added_.begin(), added_.end(), std::back_inserter(active));
        added_.clear();
      }
      bool moved = false;
      for (auto it = active.begin(); it != active.end();) {
        if (finish_if_possible(**it)) {
          it = active.erase(it);
          moved = true;
        } else {
          ++it;
        }
      }
      if (moved || active.empty()) continue;
      if (waiting_.load(std::memory_order_relaxed) > 0) {
        sched_yield();
      } else {
        std::unique_lock lock(mutex_);
        if (added_.empty()) wake_.wait_for(lock, kPollInterval);
      }
    }
  }

  bool finish_if_possible(Pending& pending) {
    std::exception_ptr error;
    try {
      if (!pending.advance(*transport_)) {
        report_stall(pending);
        return false;
      }
    } catch (...) {
      error = std::current_exception();
    }
    {
      std::lock_guard lock(mutex_);
      pending.finished = true;
      pending.error = error;
    }
    finished_.notify_all();
    return true;
  }

  void report_stall(Pending& pending) {
    const auto now = Clock::now();
    if (pending.started == Clock::time_point()) pending.started = pending.reported = now;
    if (now - pending.reported < kStallReportInterval) return;
    pending.reported = now;
    StallListener listener;
    {
      std::lock_guard lock(mutex_);
      listener = listener_;
    }
    if (!listener) return;
    std::vector<int> missing;
    for (const Transport::Request& request : pending.requests) missing.push_back(request.peer);
    std::ranges::sort(missing);
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    listener(pending.what, missing, std::chrono::duration<double>(now - pending.started).count());
  }

  std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::deque<std::shared_ptr<Pending>> added_;
  std::atomic<int> waiting_{0};
  bool stop_ = false;
  StallListener listener_;
  std::thread thread_;  // last: it uses the others
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
  const bool finished = pending->advance(*alone_);
  MOX_ASSERT(finished, "an operation of one rank waits for nobody");
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

void Communicator::run(std::unique_ptr<Operation> operation, std::string what) {
  wait(start(std::move(operation), std::move(what)));
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
