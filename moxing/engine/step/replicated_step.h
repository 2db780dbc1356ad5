// One training step of all logical replicas: each computes its batch, their gradients meet
// (gradient_reduction.h), and the variables, of which a process has one copy, are updated while the backward
// pass still runs.
//
// The step minimises the mean loss over all samples of the global batch: a replica whose batch is short
// counts with its number of samples, one without a batch counts nothing. The moving averages of batch
// normalisation, and whatever else a model updates after a step, become the mean over the replicas in the
// same way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/step/parameter_updater.h"
#include "moxing/engine/step/step_rule.h"
#include "moxing/engine/step/variable_copies.h"
#include "moxing/hooks/hook.h"
#include "runtime/replicas/gradient_reduction.h"
#include "runtime/replicas/lane_threads.h"
#include "runtime/replicas/placement.h"
#include "runtime/replicas/replica_meeting.h"
#include "runtime/replicas/step_timing.h"

namespace mox::internal {

struct StepMoment {
  uint64_t seed = 0;
  int64_t step = 0;  // done before this one
  double steps_per_epoch = 0;
  double learning_rate_multiplier = 1;
};

// Who applies gradients, and to what.
struct StepVariables {
  ParameterUpdater* host = nullptr;
  // With UpdateScheme::kReplicated those of the lanes after the first, which the host's updater serves.
  std::vector<ParameterUpdater*> of_lanes;
  VariableCopies* copies = nullptr;
};

class ReplicatedStep : public StepResult {
 public:
  // `full_batch`: samples of a batch that is not short. `compiler` makes one instance a lane, with gradients
  // in parts if `in_parts` says so: with one replica alone, if the updater takes parts.
  ReplicatedStep(const Placement& placement, Communicator& communicator, ModelCompiler& compiler,
                 const StepVariables& variables, LaneThreads& lanes, const Team& team, int64_t full_batch,
                 const BucketOptions& buckets, bool in_parts);
  ~ReplicatedStep() override;

  // From the next step on `rule` changes the variables in place of the optimizer; it outlives the steps.
  // Needs gradients that are not in parts, and variables that the lanes share with the host.
  void set_rule(StepRule* rule) { rule_ = rule; }

  // Makes ready for batches of this signature, so that mistakes show before the first step.
  void prepare(CompiledModel& model);

  // Begins a step. `batches`: of this process's replicas, in their order; at the end of the data the last
  // ones are missing. They stay as they are until the step's end. False if no replica of any rank has a
  // batch: then there is no step. All ranks call it together.
  bool begin(std::span<const Batch> batches);
  // Computes the step that `begin` has begun.
  void run(const StepMoment& moment);

  // Of the last step. Numbers are means over all samples of the global batch. Outputs are those of this
  // process's replicas, one behind the other; other arrays are those of its first one.
  const Array& array(std::string_view name) const override;
  int64_t samples() const override { return samples_; }
  // Whether the last step was left out (loss_scale.h): nothing has changed but the numbers that it fetched.
  bool was_left_out() const { return was_left_out_; }

  // Of all steps so far, apart from those of one replica whose gradients are taken in parts.
  const StepTiming& timing() const { return timing_; }

 private:
  struct Reductions;

  Reductions& reductions_of(CompiledModel& model);
  void compute_replicas(const StepMoment& moment, int lane);
  void compute_replica(CompiledModel& model, const Batch& batch, int lane, int64_t nth);
  void contribute_nothing(int lane, int64_t nth);
  double share_of(const Batch& batch) const;
  void accompany(const StepMoment& moment, int lane);
  // Elements from `first` on of the sum of a gradient or of a value that is updated after the step.
  struct SumRange {
    size_t index;
    int64_t first;
    std::span<float> sum;
  };
  void take_gradient(SumRange range);
  void take_update(const SumRange& range);
  void take_waiting_updates();
  void apply_gradient(const SumRange& range);
  void know_samples(int64_t samples);
  bool applies_at_the_end() const;
  void apply_together();
  void bring_copies_up_to_date();
  void begin_meeting();
  StepInputs inputs_of(size_t local) const;
  void apply_rule(double gradient_scale);
  double loss_of_variables();
  // Over all samples of the global batch; `values`: of this process's replicas. All ranks call it together.
  double mean_of_replicas(const std::vector<double>& values);
  void combine_values();
  void combine_outputs();

  const Placement placement_;
  Communicator& communicator_;
  ModelCompiler& compiler_;
  ParameterUpdater& updater_;
  StepRule* rule_ = nullptr;  // in place of the updater
  const std::vector<ParameterUpdater*> lane_updaters_;
  VariableCopies& copies_;
  LaneThreads& lanes_;
  const Team& team_;
  const Team single_thread_;
  int64_t full_batch_;
  BucketOptions bucket_options_;

  const bool in_parts_;  // one replica alone: gradients go to the optimizer as they are computed
  std::map<const CompiledModel*, std::shared_ptr<Reductions>> reductions_;
  ReplicaMeeting meeting_;
  CompiledModel* full_model_ = nullptr;  // of a batch that is not short
  std::vector<Array> no_batch_;          // zeros of its signature
  Reductions* current_ = nullptr;        // of the step under way
  StepMoment moment_;                    // its
  std::span<const Batch> batches_;
  std::vector<CompiledModel*> models_;  // of this process's replicas; null for one without a batch
  CompiledModel* any_model_ = nullptr;
  std::vector<std::vector<double>> numbers_;  // of each local replica: its fetches of one element
  std::vector<std::vector<Array>> arrays_;    // of each local replica: the other fetches
  std::vector<Array> values_;                 // of the step, by fetch
  int64_t samples_ = 0;
  int64_t own_samples_ = 0;                // of this process; sent to the others
  std::vector<std::string> told_samples_;  // what they sent
  std::shared_ptr<Communicator::Pending> telling_;

  StepTiming timing_;

  // The factor that makes a sum over replicas a mean over samples. Known once every rank has told its
  // samples; until then, what is summed waits. Touched by the thread that delivers, before and after the
  // lanes run by the calling one. Several lanes deliver at once only where one process has all replicas: the
  // scale is known from the beginning then, and each takes elements of its own.
  bool was_left_out_ = false;
  bool updates_may_be_taken_ = false;  // false while the step may still be left out
  bool scale_is_known_ = false;
  double scale_ = 1;
  std::vector<SumRange> waiting_gradients_, waiting_updates_;
  // Of all gradients, where updates wait for their last element or for the last of them:
  std::vector<std::span<float>> sums_;
  std::vector<int64_t> elements_left_;
};

}  // namespace mox::internal
