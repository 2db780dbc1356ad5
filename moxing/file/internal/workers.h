// The threads of a copy: they take files, and the parts of large ones, from one list of tasks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mox::file::internal {

// Tasks may add tasks and must not wait for each other, nor throw.
class Workers {
 public:
  explicit Workers(int threads);
  ~Workers();  // runs what is left
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void add(std::function<void()> task);
  // Before all others: what ends a file that was begun.
  void add_first(std::function<void()> task);

  // What is under way elsewhere and will add a task: `wait` waits for it. `arrived` is called by a task.
  void expect();
  void arrived(int count);

  // Returns when no task is left, under way or expected.
  void wait();

 private:
  void work();
  bool is_idle() const;  // with the mutex held

  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<std::function<void()>> tasks_;
  int busy_ = 0, expected_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace mox::file::internal
