#include "runtime/comm/internal/collectives.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mox::internal {
namespace {

// In round r each member tells the one 2^r after it, and hears from the one 2^r before it (dissemination
// barrier, Hensgen, Finkel and Manber 1988).
class Barrier : public Operation {
 public:
  explicit Barrier(std::vector<int> members) : members_(std::move(members)) {}

  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    const int size = members_.size();
    if (distance_ >= size) return false;
    const auto member = [&](int place) { return members_[(place + size) % size]; };
    const int own = std::ranges::lower_bound(members_, transport.rank()) - members_.begin();
    requests.push_back(transport.receive(member(own - distance_), kCollectiveTag, std::span(&heard_, 1)));
    requests.push_back(transport.send(member(own + distance_), kCollectiveTag, std::span(&told_, 1)));
    distance_ *= 2;
    return true;
  }

 private:
  std::vector<int> members_;
  int distance_ = 1;
  std::byte told_{1}, heard_{0};
};

// A binomial tree: who has the data hands them on to the half of the remaining ranks that begins behind it.
class Broadcast : public Operation {
 public:
  Broadcast(std::span<std::byte> data, int root) : data_(data), root_(root) {}

  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    const int size = transport.size(), place = (transport.rank() - root_ + size) % size;
    const auto rank_at = [&](int p) { return (p + root_) % size; };
    int reach = 1;  // the lowest bit of the place: from whom it comes, and how far it is handed on
    while (reach < size && (place & reach) == 0) reach *= 2;
    if (phase_ == 0) {
      phase_ = 1;
      if (place != 0) {
        requests.push_back(transport.receive(rank_at(place - reach), kCollectiveTag, data_));
        return true;
      }
    }
    if (phase_ == 1) {
      phase_ = 2;
      for (int distance = reach / 2; distance >= 1; distance /= 2)
        if (place + distance < size)
          requests.push_back(transport.send(rank_at(place + distance), kCollectiveTag, data_));
      return !requests.empty();
    }
    return false;
  }

 private:
  std::span<std::byte> data_;
  int root_, phase_ = 0;
};

class Allgather : public Operation {
 public:
  Allgather(std::span<const std::byte> data, std::vector<std::string>* results, int tag)
      : data_(data), results_(results), tag_(tag) {}

  bool advance(Transport& transport, std::vector<Transport::Request>& requests) override {
    if (started_) return false;
    started_ = true;
    const int size = transport.size(), rank = transport.rank();
    auto text = [&](int r) -> std::string& { return (*results_)[r]; };
    text(rank).assign(reinterpret_cast<const char*>(data_.data()), data_.size());
    for (int step = 1; step < size; ++step) {
      const int peer = (rank + step) % size;
      requests.push_back(transport.receive(
          peer, tag_, std::as_writable_bytes(std::span(text(peer).data(), text(peer).size()))));
      requests.push_back(transport.send(peer, tag_, data_));
    }
    return !requests.empty();
  }

 private:
  std::span<const std::byte> data_;
  std::vector<std::string>* results_;
  int tag_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Operation> make_barrier(std::vector<int> members) {
  return std::make_unique<Barrier>(std::move(members));
}
std::unique_ptr<Operation> make_broadcast(std::span<std::byte> data, int root) {
  return std::make_unique<Broadcast>(data, root);
}
std::unique_ptr<Operation> make_allgather_of_known_lengths(std::span<const std::byte> data,
                                                           std::vector<std::string>* results) {
  return std::make_unique<Allgather>(data, results, kCollectiveTag);
}

}  // namespace mox::internal

namespace mox {

std::unique_ptr<Operation> make_allgather(std::span<const std::byte> data, std::vector<std::string>* results,
                                          int tag) {
  for (std::string& text : *results) text.resize(data.size());
  return std::make_unique<internal::Allgather>(data, results, tag);
}

}  // namespace mox
