#include "runtime/replicas/gradient_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/comm/add.h"

namespace mox::internal {
namespace {

// A long bucket is sent in parts at the same time: while one waits for its next message, the others
// fill the network.
constexpr int64_t kSendingParts = 4;
constexpr int64_t kLeastElementsOfAPart = int64_t{1} << 18;

// Of the first bucket; smaller ones cost more in messages than they hide.
constexpr int64_t kSmallestShare = 4;

int64_t sending_parts(int64_t elements) {
  return std::clamp<int64_t>(elements / kLeastElementsOfAPart, 1, kSendingParts);
}

}  // namespace

int64_t bucket_messages(int64_t elements, int ranks) {
  const int64_t parts = sending_parts(elements);
  return parts * tree_sum_messages((elements + parts - 1) / parts, ranks);
}

GradientReduction::GradientReduction(const Placement& placement, Communicator& ranks,
                                     std::vector<BlockPart> parts, int64_t block_elements,
                                     const BucketOptions& options, Deliver deliver)
    : placement_(placement),
      ranks_(ranks),
      parts_(std::move(parts)),
      block_elements_(block_elements),
      options_(options),
      deliver_(std::move(deliver)) {
  plan_buckets(options);
  lanes_.resize(placement.lanes);
  for (Lane& lane : lanes_) {
    lane.reported.assign(buckets_.size(), 0);
    lane.stacks.resize(buckets_.size());
  }
  combined_.resize(buckets_.size());
  parts_under_way_.resize(buckets_.size());
  scratch_.resize(buckets_.size() * kSendingParts);
  pending_.resize(buckets_.size() * kSendingParts);
  for (const Bucket& bucket : buckets_) times_.push_back({.elements = bucket.elements});
  lanes_left_ = std::vector<std::atomic<int>>(buckets_.size());
}

void GradientReduction::plan_buckets(const BucketOptions& options) {
  int64_t limit = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const int64_t end = i + 1 < parts_.size() ? parts_[i + 1].offset : block_elements_;
    if (buckets_.empty() || buckets_.back().elements >= limit) {
      // What is final last travels when nothing is left to hide it: so buckets shrink towards the end, none
      // being larger than half of what is left.
      const int64_t left = block_elements_ - parts_[i].offset;
      limit = buckets_.empty() ? options.first_bucket_elements
                               : std::min(options.bucket_elements,
                                          std::max(options.first_bucket_elements / kSmallestShare, left / 2));
      buckets_.push_back({i, i, parts_[i].offset, 0});
    }
    Bucket& bucket = buckets_.back();
    bucket.last_part = i;
    bucket.elements = end - bucket.offset;
    bucket_of_.push_back(buckets_.size() - 1);
  }
}

void GradientReduction::begin_step() {
  for (auto& left : lanes_left_) left.store(placement_.lanes, std::memory_order_relaxed);
  lanes_under_way_ = placement_.lanes;
  // A step that an exception ended may have left something.
  waiting_.clear();
  for (Lane& lane : lanes_) {
    lane.under_way = true;
    std::ranges::fill(lane.reported, 0);
    for (Stack& stack : lane.stacks) stack.clear();
  }
}

void GradientReduction::add(int lane_number, int64_t nth, size_t index, std::span<float> block) {
  Lane& lane = lanes_[lane_number];
  const size_t b = bucket_of_[index];
  const Bucket& bucket = buckets_[b];
  if (++lane.reported[b] <= bucket.last_part - bucket.first_part) return;
  lane.reported[b] = 0;

  Stack& stack = lane.stacks[b];
  float* own = block.data() + bucket.offset;
  const int64_t leaf = placement_.replicas_of(lane_number).first + nth;
  push_partial_sum(placement_.logical_replicas, stack, {{leaf, leaf + 1}, own},
                   [&](float* left, const float* right) { add_to(left, right, bucket.elements); });
  if (nth + 1 < placement_.replicas_per_lane()) {
    // The next replica of this lane will overwrite the block.
    if (stack.back().value == own) {
      const size_t height = stack.size() - 1;
      if (lane.spares.size() <= height) lane.spares.resize(height + 1);
      std::vector<float>& spare = lane.spares[height];
      if (spare.empty()) spare.resize(block_elements_);
      std::memcpy(spare.data() + bucket.offset, own, bucket.elements * sizeof(float));
      stack.back().value = spare.data() + bucket.offset;
    }
    return;
  }
  const bool is_last = lanes_left_[b].fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (is_last) times_[b].ready = std::chrono::steady_clock::now();
  if (placement_.ranks > 1) {
    if (is_last) send(b);
  } else if (placement_.lanes == 1) {
    deliver_in_process(b);
  } else {
    std::unique_lock lock(mutex_);
    if (is_last) {
      waiting_.push_back(b);
      changed_.notify_one();
    } else {
      deliver_waiting(lock);
    }
  }
}

const GradientReduction::Stack& GradientReduction::sum_lanes(size_t b, int64_t first, int64_t elements) {
  Stack& stack = combined_[b];
  stack.clear();
  for (const Lane& lane : lanes_)
    for (const PartialSum<float*>& partial : lane.stacks[b])
      push_partial_sum(placement_.logical_replicas, stack, {partial.leaves, partial.value + first},
                       [&](float* left, const float* right) { add_to(left, right, elements); });
  return stack;
}

void GradientReduction::deliver_in_process(size_t b) {
  const int64_t elements = buckets_[b].elements;
  const int64_t range = options_.range_elements > 0 ? options_.range_elements : elements;
  for (int64_t first = 0; first < elements; first += range) {
    const int64_t count = std::min(range, elements - first);
    const Stack& sum = sum_lanes(b, first, count);
    MOX_ASSERT(sum.size() == 1, "one rank has all leaves");
    deliver(b, first, {sum.front().value, static_cast<size_t>(count)});
  }
  for (Lane& lane : lanes_) lane.stacks[b].clear();
  times_[b].delivered = std::chrono::steady_clock::now();
}

void GradientReduction::deliver_waiting(std::unique_lock<std::mutex>& lock) {
  while (!waiting_.empty()) {
    const size_t bucket = waiting_.back();
    waiting_.pop_back();
    lock.unlock();
    deliver_in_process(bucket);
    lock.lock();
  }
}

// The caller holds mutex_.
void GradientReduction::leave(int lane) {
  if (std::exchange(lanes_[lane].under_way, false) && --lanes_under_way_ == 0) changed_.notify_all();
}

void GradientReduction::finish_lane(int lane) {
  if (placement_.ranks > 1 || placement_.lanes == 1) return;
  std::unique_lock lock(mutex_);
  leave(lane);
  while (lanes_under_way_ > 0 || !waiting_.empty()) {
    changed_.wait(lock, [&] { return lanes_under_way_ == 0 || !waiting_.empty(); });
    deliver_waiting(lock);
  }
}

void GradientReduction::abandon_lane(int lane) {
  const std::lock_guard lock(mutex_);
  leave(lane);
}

void GradientReduction::send(size_t b) {
  const Bucket& bucket = buckets_[b];
  const Stack& stack = sum_lanes(b, 0, bucket.elements);
  for (Lane& lane : lanes_) lane.stacks[b].clear();
  times_[b].communication_s = ranks_.work().processor_seconds;
  const int64_t parts = sending_parts(bucket.elements);
  parts_under_way_[b] = static_cast<int>(parts);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = bucket.elements * part / parts, end = bucket.elements * (part + 1) / parts;
    const size_t slot = b * kSendingParts + part;
    TreeSum sum{.leaves = placement_.logical_replicas,
                .elements = end - begin,
                .partial_sums = {},
                .result = stack.front().value + begin,
                .wire = options_.wire,
                .root = options_.root,
                .tag = options_.first_tag + static_cast<int>(slot),
                .scratch = &scratch_[slot],
                .arrived = [this, b, result = stack.front().value](std::span<float> range) {
                  deliver(b, range.data() - result, range);
                }};
    for (const PartialSum<float*>& partial : stack) sum.partial_sums.push_back(partial.value + begin);
    pending_[slot] = ranks_.start(make_tree_sum(sum), fmt::format("{} {}", options_.name, b), [this, b] {
      if (--parts_under_way_[b] == 0) times_[b].delivered = std::chrono::steady_clock::now();
    });
  }
}

int GradientReduction::tags() const { return pending_.size(); }

void GradientReduction::deliver(size_t b, int64_t first, std::span<float> sum) {
  const Bucket& bucket = buckets_[b];
  const int64_t begin = bucket.offset + first, end = begin + sum.size();
  for (size_t i = bucket.first_part; i <= bucket.last_part; ++i) {
    // Between parts there may be elements of none.
    const int64_t from = std::max(begin, parts_[i].offset),
                  to = std::min(end, parts_[i].offset + parts_[i].elements);
    if (from < to) deliver_(i, from - parts_[i].offset, sum.subspan(from - begin, to - from));
  }
}

void GradientReduction::finish() {
  for (auto& pending : pending_)
    if (pending) ranks_.wait(std::exchange(pending, nullptr));
}

}  // namespace mox::internal
