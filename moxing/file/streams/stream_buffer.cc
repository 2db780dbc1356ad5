#include "moxing/file/streams/internal/stream_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace mox::file::internal {
namespace {

// Threads that wait for answers; they cost little.
constexpr int kRequestsAtATime = 32;

}  // namespace

StreamBuffer& StreamBuffer::of_process() {
  static StreamBuffer buffer;
  return buffer;
}

StreamBuffer::~StreamBuffer() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

bool StreamBuffer::has(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return pieces_.contains(key);
}

bool StreamBuffer::announce(Request request, bool first) {
  const std::lock_guard lock(mutex_);
  // Another thread may have asked for a part of it meanwhile.
  for (const std::string& key : request.keys)
    if (pieces_.contains(key)) return true;
  if (!make_room(request.bytes)) return false;
  add(std::move(request), first);
  return true;
}

StreamBuffer::Bytes StreamBuffer::take(const std::string& key, const std::function<Request()>& request) {
  std::unique_lock lock(mutex_);
  if (!pieces_.contains(key)) {
    Request wanted = request();
    MOX_ASSERT(wanted.keys == std::vector<std::string>{key}, "a piece is asked for by a request of its own");
    make_room(wanted.bytes);
    add(std::move(wanted), true);
  }
  Piece& piece = pieces_.at(key);
  ++piece.waiting;
  arrived_.wait(lock, [&] { return piece.done; });
  --piece.waiting;
  order_.splice(order_.end(), order_, piece.used);
  if (!piece.error) return piece.bytes;
  const std::exception_ptr error = piece.error;
  if (piece.waiting == 0) {
    order_.erase(piece.used);
    pieces_.erase(key);
  }
  std::rethrow_exception(error);
}

void StreamBuffer::add(Request request, bool first) {
  if (threads_.size() < kRequestsAtATime) try {
      threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error& error) {
      if (threads_.empty())
        throw FailedPrecondition(fmt::format(
            "the system lets this process have no thread to fetch objects with: {}", error.code().message()));
    }
  const int64_t each = request.bytes / static_cast<int64_t>(request.keys.size());
  for (const std::string& key : request.keys) {
    Piece& piece = pieces_[key];
    piece.cost = each;
    piece.used = order_.insert(order_.end(), key);
    bytes_ += each;
  }
  peak_ = std::max(peak_, bytes_);
  if (first)
    requests_.push_front(std::move(request));
  else
    requests_.push_back(std::move(request));
  requested_.notify_one();
}

bool StreamBuffer::make_room(int64_t bytes) {
  for (auto key = order_.begin(); key != order_.end() && bytes_ + bytes > limit_;) {
    const auto found = pieces_.find(*key);
    if (!found->second.done || found->second.waiting > 0) {
      ++key;
      continue;
    }
    bytes_ -= found->second.cost;
    pieces_.erase(found);
    key = order_.erase(key);
  }
  return bytes_ + bytes <= limit_;
}

void StreamBuffer::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    requested_.wait(lock, stop, [this] { return !requests_.empty(); });
    if (stop.stop_requested()) return;
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    std::vector<std::string> contents;
    std::exception_ptr error;
    try {
      contents = request.fetch(stop);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    for (size_t i = 0; i < request.keys.size(); ++i) {
      Piece& piece = pieces_.at(request.keys[i]);
      bytes_ -= piece.cost;
      piece.cost = error ? 0 : contents[i].size();
      bytes_ += piece.cost;
      piece.error = error;
      if (!error) piece.bytes = std::make_shared<const std::string>(std::move(contents[i]));
      piece.done = true;
      if (error && piece.waiting == 0) {  // whoever needs it asks again
        order_.erase(piece.used);
        pieces_.erase(request.keys[i]);
      }
    }
    peak_ = std::max(peak_, bytes_);
    make_room(0);
    arrived_.notify_all();
  }
}

void StreamBuffer::drop(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = pieces_.find(key);
  if (found == pieces_.end() || !found->second.done || found->second.waiting > 0) return;
  bytes_ -= found->second.cost;
  order_.erase(found->second.used);
  pieces_.erase(found);
}

void StreamBuffer::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  make_room(0);
}

int64_t StreamBuffer::limit() {
  const std::lock_guard lock(mutex_);
  return limit_;
}

int64_t StreamBuffer::take_peak() {
  const std::lock_guard lock(mutex_);
  return std::exchange(peak_, bytes_);
}

}  // namespace mox::file::internal
