#include "runtime/job/network_probe.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/base/seconds.h"

namespace mox::internal {
namespace {

constexpr int kRounds = 51, kMessagesAtOnce = 32;

// So many messages of one byte to every other rank, and from it, all under way at the same time.
class ShortMessages : public Operation {
 public:
  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    if (started_) return false;
    started_ = true;
    const int size = transport.size(), rank = transport.rank();
    arrived_.resize(size * kMessagesAtOnce);
    size_t next = 0;
    for (int step = 1; step < size; ++step)
      for (int i = 0; i < kMessagesAtOnce; ++i)
        requests.push_back(transport.receive((rank - step + size) % size, kFirstFreeTag,
                                             std::span(arrived_).subspan(next++, 1)));
    for (int i = 0; i < kMessagesAtOnce; ++i)
      for (int step = 1; step < size; ++step)
        requests.push_back(transport.send((rank + step) % size, kFirstFreeTag, std::span(&letter_, 1)));
    return true;
  }

 private:
  std::vector<std::byte> arrived_;
  std::byte letter_{1};
  bool started_ = false;
};

template <typename Body>
double median_seconds(const Body& body) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const auto before = Clock::now();
    body();
    seconds.push_back(seconds_since(before));
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace

NetworkCosts measure_network(Communicator& ranks) {
  if (ranks.size() == 1) return {};
  NetworkCosts costs;
  costs.latency_s = median_seconds([&] { ranks.allgather_equal("x"); });
  // With many under way none is waited for: beyond one latency, what it takes is work.
  const double together =
      median_seconds([&] { ranks.wait(ranks.start(std::make_unique<ShortMessages>(), "short messages")); });
  costs.message_work_s = std::max(0.0, together - costs.latency_s) / (kMessagesAtOnce * (ranks.size() - 1));
  return costs;
}

}  // namespace mox::internal
