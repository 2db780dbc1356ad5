// What the replicas of a step have fetched, and what the step makes of it: numbers as means over all samples
// of the global batch, outputs of this process's replicas one behind the other.
#pragma once

#include <span>
#include <vector>

#include "moxing/engine/compile/compiled_model.h"
#include "runtime/comm/communicator.h"
#include "runtime/data/pipeline.h"

namespace mox::internal {

class StepValues {
 public:
  // Of each fetch of a model: whether it is one of output_info; else whether it is one number,
  // which is averaged.
  struct Kinds {
    std::vector<bool> is_output, is_number;
  };
  static Kinds kinds_of(const CompiledModel& model);

  // `batches`: of the first ones of this process's `replicas`; the others have none.
  void begin_step(const Kinds& kinds, std::span<const Batch> batches, size_t replicas);
  // What a run of `instance` has fetched for the `local`-th replica. By its lane.
  void keep(size_t local, const PlanInstance& instance);
  // Of the only replica there is: the values are the instance's own.
  void take(const PlanInstance& instance);
  // All ranks call it together. `instance`: of any replica, for the types of values that none has.
  void combine(const PlanInstance& instance, Communicator& ranks);

  // The loss that a replica has computed, the first of its fetches.
  double loss_of(size_t local) const { return numbers_[local][0]; }
  const Array& of_fetch(size_t fetch) const { return values_[fetch]; }

  // Of numbers that each of this process's replicas has as many of: their means over all samples of the
  // global batch. All ranks call it together.
  std::vector<double> means_over_samples(const std::vector<std::vector<double>>& numbers, size_t count,
                                         Communicator& ranks) const;

 private:
  void combine_outputs(const PlanInstance& instance);

  const Kinds* kinds_ = nullptr;  // of the step's model
  std::span<const Batch> batches_;
  std::vector<std::vector<double>> numbers_;  // of each replica: its fetches of one number
  std::vector<std::vector<Array>> arrays_;    // of each replica: the other fetches
  std::vector<Array> values_;                 // of the step, by fetch
};

}  // namespace mox::internal
