#include "runtime/comm/internal/communication_thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "runtime/base/error.h"
#include "runtime/base/seconds.h"

namespace mox {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at operations under way while all other threads compute: polling without a pause would
// take a core from them. A look at a network costs some 10 us, so the pauses follow what it carries: each
// look in vain doubles them, and one that finds something makes them a quarter, half of which the look in
// vain behind it takes back. A link of 1 Gbit/s so gets one or two looks a chunk.
constexpr std::chrono::microseconds kShortestPause(25), kLongestPause(2000);
constexpr int kShorterWhenMoved = 4;
constexpr auto kStallReportInterval = std::chrono::milliseconds(100);

// In a real-time class, a thread that wakes waits for the time slice of one that computes with the same
// priority, 100 ms; so there the calling thread takes the next higher one. Where it has not the right to, all
// stays as it is.
void run_before_computing_threads() {
  int policy = SCHED_OTHER;
  sched_param parameters{};
  if (pthread_getschedparam(pthread_self(), &policy, &parameters) != 0) return;
  if (policy != SCHED_FIFO && policy != SCHED_RR) return;
  ++parameters.sched_priority;
  pthread_setschedparam(pthread_self(), policy, &parameters);
}

}  // namespace

Communicator::Pending::State Communicator::Pending::advance(Transport& transport, Work& sent) {
  std::erase_if(requests, [&](const Transport::Request& request) {
    if (!transport.test(request)) return false;
    if (request.bytes_sent > 0) ++sent.messages_sent;
    sent.bytes_sent += request.bytes_sent;
    return true;
  });
  if (!requests.empty()) return State::kWaiting;
  if (operation->advance(transport, requests)) return State::kMoved;
  if (done) done();
  return State::kFinished;
}

Communicator::Thread::Thread(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), thread_([this] { loop(); }) {}
Communicator::Thread::~Thread() { stop(); }

void Communicator::Thread::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  std::lock_guard driving(driving_);  // nobody is at work on an operation any more
}

void Communicator::Thread::add(std::shared_ptr<Pending> pending) {
  {
    std::lock_guard lock(mutex_);
    added_.push_back(std::move(pending));
  }
  wake_.notify_one();
}

void Communicator::Thread::run(const std::shared_ptr<Pending>& pending) {
  {
    std::lock_guard lock(mutex_);
    blocked_.push_back(pending.get());
    added_.push_back(pending);
  }
  drive_to_end(*pending);
}

void Communicator::Thread::wait(Pending& pending) {
  {
    std::lock_guard lock(mutex_);
    blocked_.push_back(&pending);
  }
  drive_to_end(pending);
}

std::optional<Communicator::Wait> Communicator::Thread::longest_wait() {
  std::lock_guard lock(mutex_);
  const Pending* longest = nullptr;
  for (const Pending* pending : blocked_)
    if (!pending->finished && !pending->missing.empty() &&
        (!longest || pending->missing_since < longest->missing_since))
      longest = pending;
  if (!longest) return std::nullopt;
  return Wait{longest->what, longest->missing, seconds_since(longest->missing_since)};
}

void Communicator::Thread::set_stall_listener(StallListener listener) {
  std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

Communicator::Work Communicator::Thread::work() {
  Work work{.messages_sent = messages_sent_.load(std::memory_order_relaxed),
            .bytes_sent = bytes_sent_.load(std::memory_order_relaxed)};
  clockid_t clock{};
  timespec spent{};
  if (pthread_getcpuclockid(thread_.native_handle(), &clock) == 0 && clock_gettime(clock, &spent) == 0)
    work.processor_seconds = spent.tv_sec + 1e-9 * spent.tv_nsec;
  return work;
}

// `pending` is one of blocked_, and no longer after this.
void Communicator::Thread::drive_to_end(Pending& pending) {
  auto since = Clock::now();
  while (!is_over(pending)) {
    bool moved = false;
    {
      std::lock_guard driving(driving_);
      Work sent;  // by another thread than the communication thread: not its work
      moved = drive(sent);
    }
    if (moved) {
      since = Clock::now();
    } else {
      giving_way_.between_looks(since);
    }
  }
  std::unique_lock lock(mutex_);
  blocked_.erase(std::ranges::find(blocked_, &pending));
  if (blocked_.empty() && (under_way_ || !added_.empty())) wake_.notify_one();
  if (!pending.finished) throw IoError("the communication between the ranks has ended");
  if (pending.error) std::rethrow_exception(pending.error);
}

bool Communicator::Thread::is_over(const Pending& pending) {
  std::lock_guard lock(mutex_);
  return pending.finished || stop_;
}

void Communicator::Thread::loop() {
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
    pause = moved ? std::max(kShortestPause, pause / kShorterWhenMoved) : std::min(pause * 2, kLongestPause);
    if (moved) continue;
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, pause, [&] { return stop_ || !added_.empty(); })) pause = kShortestPause;
  }
}

// Works on all operations as far as they go without waiting; whether one of them went on. The
// caller holds `driving_`.
bool Communicator::Thread::drive(Work& sent) {
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

bool Communicator::Thread::finish_if_possible(Pending& pending, Work& sent, bool& moved) {
  std::exception_ptr error;
  try {
    const auto state = pending.advance(*transport_, sent);
    if (state == Pending::State::kWaiting) {
      report_stall(pending);
    } else {
      moved = true;
      went_on(pending);
    }
    if (state != Pending::State::kFinished) return false;
  } catch (...) {
    error = std::current_exception();
  }
  return finish(pending, error);
}

bool Communicator::Thread::finish(Pending& pending, const std::exception_ptr& error) {
  std::lock_guard lock(mutex_);
  pending.finished = true;
  pending.error = error;
  return true;
}

void Communicator::Thread::went_on(Pending& pending) {
  pending.waits_since = {};
  std::lock_guard lock(mutex_);
  pending.missing.clear();
}

void Communicator::Thread::report_stall(Pending& pending) {
  const auto now = Clock::now();
  if (pending.waits_since == Clock::time_point()) pending.waits_since = pending.reported = now;
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
    pending.missing_since = pending.waits_since;
    listener = listener_;
  }
  if (listener) listener(pending.what, missing, in_seconds(now - pending.waits_since));
}

}  // namespace mox
