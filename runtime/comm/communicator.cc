#include "runtime/comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/comm/internal/collectives.h"
#include "runtime/comm/internal/communication_thread.h"

namespace mox {

Communicator::Communicator() : Communicator(std::move(make_thread_transports(1)[0])) {}

Communicator::Communicator(std::unique_ptr<Transport> transport, const std::string& host,
                           const std::string& machine)
    : rank_(transport->rank()), size_(transport->size()) {
  if (size_ > 1) {
    thread_ = std::make_unique<Thread>(std::move(transport));
  } else {
    alone_ = std::move(transport);
  }
  exchange_hosts(host, machine.empty() ? host : machine);
}

Communicator::~Communicator() = default;

void Communicator::exchange_hosts(const std::string& host, const std::string& machine) {
  hosts_ = allgather(host);
  const std::vector<std::string> machines = allgather(machine);
  local_ranks_.clear();
  for (int r = 0; r < size_; ++r) {
    if (machines[r] != machine) continue;
    if (r == rank_) local_rank_ = static_cast<int>(local_ranks_.size());
    local_ranks_.push_back(r);
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
  thread_->run(pending);
}

void Communicator::barrier() {
  std::vector<int> all(size_);
  std::iota(all.begin(), all.end(), 0);
  run(internal::make_barrier(std::move(all)), "barrier");
}

void Communicator::local_barrier() { run(internal::make_barrier(local_ranks_), "local barrier"); }

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
  std::vector<std::string> results(size_);
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
                     .elements = std::ssize(values),
                     .partial_sums = {values.data()},
                     .result = values.data()}),
      "allreduce");
}

namespace {

template <typename T>
void sum_gathered(Communicator& ranks, std::span<T> values) {
  const auto bytes = std::as_bytes(values);
  auto parts = ranks.allgather_equal({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<PartialSum<T*>> stack;
  for (int64_t r = 0; r < ranks.size(); ++r)
    push_partial_sum(ranks.size(), stack, {{r, r + 1}, reinterpret_cast<T*>(parts[r].data())},
                     [&](T* left, const T* right) {
                       for (size_t i = 0; i < values.size(); ++i) left[i] += right[i];
                     });
  if (!values.empty()) std::memcpy(values.data(), stack[0].value, values.size_bytes());
}

}  // namespace

void Communicator::allreduce(std::span<double> values) { sum_gathered(*this, values); }
void Communicator::allreduce(std::span<int64_t> values) { sum_gathered(*this, values); }

}  // namespace mox
