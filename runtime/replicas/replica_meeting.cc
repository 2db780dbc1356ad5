#include "runtime/replicas/replica_meeting.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/comm/add.h"

namespace mox::internal {
namespace {

constexpr int kExchangeTag = 3;  // of one exchange at a time

}  // namespace

ReplicaMeeting::ReplicaMeeting(const Placement& placement, Communicator& ranks)
    : placement_(placement), ranks_(ranks) {
  const size_t count = placement.replicas().size();
  for (size_t local = 0; local < count; ++local) replicas_.emplace_back(*this, local);
  values_.resize(count);
}

void ReplicaMeeting::begin_step(std::vector<double> shares) {
  std::lock_guard lock(mutex_);
  shares_ = std::move(shares);
  arrived_ = 0;
  error_ = nullptr;
}

void ReplicaMeeting::give_up(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  changed_.notify_all();
}

void ReplicaMeeting::sum(size_t local, std::string_view what, std::span<float> values,
                         ReplicaExchange::Of of) {
  if (!placement_.replicas_meet)
    throw FailedPrecondition(
        fmt::format("'{}' sums over the {} replicas of a step, which do not all compute at the same time: "
                    "some share a lane, or have no batch at the end of the data; set sync_batch_norm, which "
                    "gives each replica a lane of its own and lets those without a batch take part",
                    what, placement_.logical_replicas));
  const double share = shares_[local];
  const auto multiply = [&](double factor) {
    if (factor != 1)
      for (float& value : values) value *= static_cast<float>(factor);
  };
  if (share == 0) {
    std::ranges::fill(values, 0.0F);  // whatever it has computed, NaN included
  } else if (of == ReplicaExchange::Of::kGradients) {
    multiply(share);
  }

  std::unique_lock lock(mutex_);
  if (arrived_ == 0) what_ = what;
  MOX_ASSERT(what_ == what, "all replicas exchange in one order");
  values_[local] = values;
  const int64_t round = round_;
  if (++arrived_ < values_.size()) {
    changed_.wait(lock, [&] { return error_ || round_ > round; });
    if (round_ == round) std::rethrow_exception(error_);
  } else {
    if (error_) std::rethrow_exception(error_);
    sum_all();
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  lock.unlock();
  if (of == ReplicaExchange::Of::kGradients && share != 0) multiply(1 / share);
}

// In the order of the tree: within this process first, then over the ranks.
void ReplicaMeeting::sum_all() {
  const int64_t elements = values_[0].size();
  std::vector<PartialSum<float*>> stack;
  const int64_t first = placement_.replicas().first;
  for (size_t local = 0; local < values_.size(); ++local) {
    MOX_ASSERT(std::ssize(values_[local]) == elements, "what is exchanged has one size");
    const int64_t leaf = first + local;
    push_partial_sum(placement_.logical_replicas, stack, {{leaf, leaf + 1}, values_[local].data()},
                     [&](float* left, const float* right) { add_to(left, right, elements); });
  }
  float* result = stack.front().value;
  if (placement_.ranks > 1) {
    TreeSum sum{.leaves = placement_.logical_replicas,
                .elements = elements,
                .partial_sums = {},
                .result = result,
                .tag = kExchangeTag};
    for (const PartialSum<float*>& partial : stack) sum.partial_sums.push_back(partial.value);
    ranks_.wait(ranks_.start(make_tree_sum(sum), what_));
  }
  for (const std::span<float> values : values_)
    if (values.data() != result) std::copy_n(result, values.size(), values.data());
}

}  // namespace mox::internal
