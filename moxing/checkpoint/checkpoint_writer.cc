#include "moxing/checkpoint/checkpoint_writer.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <utility>

#include "moxing/checkpoint/internal/checkpoint_directory.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

// Ctrl-C and its like belong to the threads of the program, so the writer's thread starts
// with signals blocked.
template <typename Body>
std::thread start_without_signals(Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string log_dir, CheckpointRetention retention, DirectoryLink link)
    : log_dir_(std::move(log_dir)), retention_(retention), link_(link) {
  if (retention.keep_last < 1 || retention.keep_every_steps < 0)
    throw InvalidArgument(
        fmt::format("checkpoints need keep_last >= 1 and keep_every_steps >= 0; given are {} and {}",
                    retention.keep_last, retention.keep_every_steps));
  internal::prepare_checkpoint_directory(log_dir_, link_);
  thread_ = start_without_signals([this] { work(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (error_) log_error(text_of(error_));
}

void CheckpointWriter::submit(Checkpoint checkpoint) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !waiting_; });
  throw_pending_error(lock);
  waiting_ = std::move(checkpoint);
  lock.unlock();
  changed_.notify_all();
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !waiting_ && !saving_; });
  throw_pending_error(lock);
}

std::optional<std::string> CheckpointWriter::last_saved() const {
  const std::lock_guard lock(mutex_);
  return last_saved_;
}

void CheckpointWriter::throw_pending_error(std::unique_lock<std::mutex>& lock) {
  if (!error_) return;
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || waiting_; });
    if (!waiting_) return;
    Checkpoint checkpoint = *std::exchange(waiting_, std::nullopt);
    saving_ = true;
    lock.unlock();
    changed_.notify_all();  // there is room to wait

    std::optional<std::string> path;
    std::exception_ptr error;
    try {
      path = internal::save_checkpoint(log_dir_, checkpoint, retention_, link_);
    } catch (...) {
      error = std::current_exception();
    }
    checkpoint = {};  // gives its memory back before the next is taken

    lock.lock();
    saving_ = false;
    if (path) last_saved_ = path;
    if (error && error_)
      log_error(text_of(error));  // an earlier one still waits to be thrown
    else if (error)
      error_ = error;
    changed_.notify_all();
  }
}

}  // namespace mox
