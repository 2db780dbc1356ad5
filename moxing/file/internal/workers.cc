#include "moxing/file/internal/workers.h"

#include <utility>

namespace mox::file::internal {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  wait();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Workers::add_first(std::function<void()> task) {
  // Who adds what is expected from elsewhere may outlive this once the mutex is free.
  const std::lock_guard lock(mutex_);
  tasks_.push_front(std::move(task));
  changed_.notify_one();
}

void Workers::expect() {
  const std::lock_guard lock(mutex_);
  ++expected_;
}

void Workers::arrived(int count) {
  const std::lock_guard lock(mutex_);
  expected_ -= count;
}

bool Workers::is_idle() const { return tasks_.empty() && busy_ == 0 && expected_ == 0; }

void Workers::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return is_idle(); });
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++busy_;
    lock.unlock();
    task();
    lock.lock();
    --busy_;
    if (is_idle()) idle_.notify_all();
  }
}

}  // namespace mox::file::internal
