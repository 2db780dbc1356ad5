#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/comm/transport.h"

namespace mox {
namespace {

// What the ranks of one process share.
struct Hub {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> messages;  // by (from, to, tag)
};

// Sends are complete at once (the message is copied); a receive looks for its message each time it is tested.
class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Hub> hub, int rank, int size)
      : hub_(std::move(hub)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Request send(int to, int tag, std::span<const std::byte> data) override {
    std::lock_guard lock(hub_->mutex);
    hub_->messages[{rank_, to, tag}].emplace_back(data.begin(), data.end());
    return {.peer = to, .id = 0, .bytes_sent = data.size()};
  }

  Request receive(int from, int tag, std::span<std::byte> data) override {
    const uint64_t id = ++last_id_;
    receives_[id] = {from, tag, data};
    return {.peer = from, .id = id};
  }

  void progress() override {}

  bool test(const Request& request) override {
    if (request.id == 0) return true;
    const Receive& wanted = receives_.at(request.id);
    // Receives of one sender and tag take their messages in the order in which they were posted.
    for (const auto& [id, other] : receives_)
      if (id < request.id && other.from == wanted.from && other.tag == wanted.tag) return false;
    std::lock_guard lock(hub_->mutex);
    auto& queue = hub_->messages[{wanted.from, rank_, wanted.tag}];
    if (queue.empty()) return false;
    MOX_ASSERT(queue.front().size() == wanted.data.size(),
               "a message has the length that its receiver expects");
    if (!wanted.data.empty()) std::memcpy(wanted.data.data(), queue.front().data(), wanted.data.size());
    queue.pop_front();
    receives_.erase(request.id);
    return true;
  }

 private:
  struct Receive {
    int from, tag;
    std::span<std::byte> data;
  };
  std::shared_ptr<Hub> hub_;
  int rank_, size_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Receive> receives_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_thread_transports(int size) {
  const auto hub = std::make_shared<Hub>();
  std::vector<std::unique_ptr<Transport>> result;
  for (int rank = 0; rank < size; ++rank)
    result.push_back(std::make_unique<ThreadTransport>(hub, rank, size));
  return result;
}

}  // namespace mox
