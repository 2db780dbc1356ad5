// Where the gradients of a step meet: those of the replicas of each lane, of the lanes of this process, and
// of the ranks, always in the order of the summation tree, each as soon as it is final.
//
// Gradients are planned into buckets of neighbours in memory, which are also neighbours in the order in which
// the backward pass finishes them. A lane that has made a bucket's last gradient adds it to what its earlier
// replicas gave; with the last lane a bucket is complete. Where there are other ranks that lane hands it to
// the communication thread, without a copy, while all lanes go on with the backward pass. Where there are
// none, the lanes' gradients are summed and delivered by a lane that is ahead: the last one has more left to
// compute than the others, and all of them end when it does.
//
// Threads: `add`, `finish_lane` and `abandon_lane` from every lane at the same time; the others from the
// thread that owns the object.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/replicas/placement.h"

namespace mox::internal {

struct BucketOptions {
  // A bucket is full with this many elements; towards the end with fewer, half of what is left, down to a
  // quarter of the first one's. 0: every gradient by itself, which is best where nothing is sent.
  int64_t first_bucket_elements = 0, bucket_elements = 0;
  WireType wire = WireType::kFloat32;
  int root = -1;  // the only rank that needs the sums; -1: all do
  int first_tag = kFirstFreeTag;
  // With one rank a sum is made and delivered in ranges of so many elements, while they are in the
  // cache. 0: whole.
  int64_t range_elements = 0;
  std::string name = "bucket";  // in reports
};

// One of the arrays that are reduced: where it lies in a replica's block.
struct BlockPart {
  int64_t offset = 0, elements = 0;
};

// When a bucket of the last step was final in this process, and when its sum over all ranks was delivered.
struct BucketTimes {
  std::chrono::steady_clock::time_point ready = {}, delivered = {};
  int64_t elements = 0;
  double communication_s = 0;  // what the communication thread had computed in all when it was ready
};

// Messages that each rank sends for a bucket of so many elements.
int64_t bucket_messages(int64_t elements, int ranks);

class GradientReduction {
 public:
  // `deliver` gets the sum of part `index` over all replicas in ranges, of which `sum` begins with element
  // `first`: each element once a step. If there is one rank, those of a part come in their order, on one
  // lane's thread; else in any order, on the thread that drives the communicator. The sums of a part lie one
  // behind the other and are valid until the next step begins.
  using Deliver = std::function<void(size_t index, int64_t first, std::span<float> sum)>;

  // `parts` lie one behind the other in blocks of `block_elements`.
  GradientReduction(const Placement& placement, Communicator& ranks, std::vector<BlockPart> parts,
                    int64_t block_elements, const BucketOptions& options, Deliver deliver);

  void begin_step();
  // Part `index` of the `nth` replica of `lane` is final in `block`, which stays untouched until the
  // replica's end (of the lane's last replica: until the step's end) and may be overwritten by sums.
  void add(int lane, int64_t nth, size_t index, std::span<float> block);
  // The lane has added all parts of all its replicas: until all lanes have, it sums and delivers what they
  // leave to it.
  void finish_lane(int lane);
  // The lane's step has failed, in `finish_lane` perhaps: the others do not wait for it.
  void abandon_lane(int lane);
  // After all lanes have finished: waits until everything is delivered.
  void finish();

  size_t buckets() const { return buckets_.size(); }
  // Of the last step, once it has finished.
  std::span<const BucketTimes> times() const { return times_; }
  int64_t bucket_elements(size_t bucket) const { return buckets_[bucket].elements; }
  int tags() const;

 private:
  struct Bucket {
    size_t first_part, last_part;
    int64_t offset, elements;
  };
  using Stack = std::vector<PartialSum<float*>>;
  struct Lane {
    bool under_way = false;                  // in a step; guarded by mutex_
    std::vector<size_t> reported;            // parts of each bucket that the current replica has made
    std::vector<Stack> stacks;               // partial sums of each bucket
    std::vector<std::vector<float>> spares;  // blocks for the partial sums at each height of a stack
  };

  void plan_buckets(const BucketOptions& options);
  void deliver_waiting(std::unique_lock<std::mutex>& lock);
  void leave(int lane);
  // Over the lanes of this process, elements from `first` on: complete partial sums in the tree's order.
  const Stack& sum_lanes(size_t bucket, int64_t first, int64_t elements);
  void deliver_in_process(size_t bucket);
  void send(size_t bucket);
  // Elements of the bucket from `first` on.
  void deliver(size_t bucket, int64_t first, std::span<float> sum);

  const Placement placement_;
  Communicator& ranks_;
  std::vector<BlockPart> parts_;
  int64_t block_elements_;
  BucketOptions options_;
  Deliver deliver_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // each part
  std::vector<Lane> lanes_;
  std::vector<Stack> combined_;  // of each bucket
  std::vector<std::atomic<int>> lanes_left_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_: complete buckets that wait for a lane, and the lanes that may still complete some.
  std::vector<size_t> waiting_;
  int lanes_under_way_ = 0;
  // Of each bucket and each of the parts in which it is sent:
  std::vector<int> parts_under_way_;  // per bucket; of the thread that drives
  std::vector<TreeSumScratch> scratch_;
  std::vector<std::shared_ptr<Communicator::Pending>> pending_;
  std::vector<BucketTimes> times_;  // written by the thread that has the bucket
};

}  // namespace mox::internal
