// Where the replicas of a training step exchange what they cannot do without while they compute (the
// statistics of sync_batch_norm): every replica of this process has a lane of its own, which waits here for
// the others.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/graph/replica_exchange.h"
#include "runtime/replicas/placement.h"

namespace mox::internal {

class ReplicaMeeting {
 public:
  // Unless the placement lets the replicas meet an exchange throws FailedPrecondition: those that share a
  // lane never would, and those without a batch at the end of the data would let the others wait.
  ReplicaMeeting(const Placement& placement, Communicator& ranks);
  ReplicaMeeting(const ReplicaMeeting&) = delete;
  ReplicaMeeting& operator=(const ReplicaMeeting&) = delete;

  // `shares`: how much each replica of this process counts in the loss, 1 for a full batch, 0
  // without a batch.
  void begin_step(std::vector<double> shares);
  // What the `local`-th replica of this process exchanges by, on its lane's thread. Valid as long as this.
  ReplicaExchange& of(size_t local) { return replicas_[local]; }
  // A lane's step has failed: those that wait for it, now or later in this step, throw `error`.
  void give_up(std::exception_ptr error);

 private:
  class Replica : public ReplicaExchange {
   public:
    Replica(ReplicaMeeting& meeting, size_t local) : meeting_(meeting), local_(local) {}
    void sum(std::string_view what, std::span<float> values, Of of) override {
      meeting_.sum(local_, what, values, of);
    }

   private:
    ReplicaMeeting& meeting_;
    size_t local_;
  };

  void sum(size_t local, std::string_view what, std::span<float> values, ReplicaExchange::Of of);
  void sum_all();

  const Placement placement_;
  Communicator& ranks_;
  std::vector<Replica> replicas_;
  std::vector<double> shares_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_: the round of exchanges that is under way.
  std::string what_;
  std::vector<std::span<float>> values_;
  size_t arrived_ = 0;
  int64_t round_ = 0;
  std::exception_ptr error_;
};

}  // namespace mox::internal
