// One training step of all logical replicas: each computes its batch, their gradients meet
// (gradient_reduction.h), and the variables, as variable_scheme.h keeps them, are updated while the backward
// pass still runs.
//
// The step minimises the mean loss over all samples of the global batch: a replica whose batch is short
// counts with its number of samples, one without a batch counts nothing. After-step values, as the moving
// averages of batch normalisation, become the mean over the replicas in the same way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/step/sample_count.h"
#include "moxing/engine/step/step_rule.h"
#include "moxing/engine/step/step_values.h"
#include "moxing/engine/step/update_gate.h"
#include "moxing/engine/step/variable_scheme.h"
#include "moxing/hooks/hook.h"
#include "runtime/replicas/gradient_reduction.h"
#include "runtime/replicas/lane_threads.h"
#include "runtime/replicas/placement.h"
#include "runtime/replicas/replica_meeting.h"
#include "runtime/replicas/step_timing.h"

namespace mox::internal {

// What a step computes with. All of it outlives the step.
struct StepEngine {
  const Placement& placement;
  Communicator& ranks;
  ModelCompiler& compiler;  // makes one instance a lane
  LaneThreads& lanes;
  const Team& team;  // of each lane
  VariableScheme& scheme;
};

class ReplicatedStep : public StepResult {
 public:
  // `full_batch`: samples of a batch that is not short. The compiler's gradients are in parts if `in_parts`
  // says so: with one replica alone, if the updater takes parts and applies at once.
  ReplicatedStep(const StepEngine& engine, int64_t full_batch, const BucketOptions& buckets, bool in_parts);
  ~ReplicatedStep() override;

  // From the next step on `rule` changes the variables in place of the optimizer; it outlives the steps.
  // Needs gradients that are not in parts, and variables that the lanes share with the host.
  void set_rule(StepRule* rule);

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
  int64_t samples() const override { return samples_.all(); }
  // Whether the last step was left out (loss_scale.h): nothing has changed but the numbers that it fetched.
  bool was_left_out() const { return gate_.left_out(); }

  // Of all steps so far, apart from those of one replica whose gradients are taken in parts.
  const StepTiming& timing() const { return timing_; }

 private:
  struct Reductions;

  Reductions& reductions_of(CompiledModel& model);
  std::shared_ptr<Reductions> make_reductions(CompiledModel& model);
  void reduce_after_step_values(const PlanInstance& instance, Reductions& reductions);

  bool is_alone() const { return engine_.placement.logical_replicas == 1; }
  double scale_of_sums(int64_t samples) const;
  double share_of(const Batch& batch) const;
  void begin_meeting();
  StepInputs inputs_of(size_t local) const;

  // On a lane:
  void compute_replicas(int lane);
  void accompany(int lane);
  void compute_replica(CompiledModel& model, int lane, int64_t nth);
  void compute_in_parts(PlanInstance& instance, const StepInputs& inputs);
  void add_after_step_values(const PlanInstance& instance, const Batch& batch, int lane, int64_t nth);
  void contribute_nothing(int lane, int64_t nth);
  void weigh(std::span<float> values, const Batch& batch) const;

  void apply_rule(StepRule& rule, std::span<const std::span<float>> gradients, double scale);
  double loss_of_variables();
  double mean_of_replicas(const std::vector<double>& values);

  const StepEngine engine_;
  const int64_t full_batch_;
  const BucketOptions bucket_options_;
  const bool in_parts_;  // one replica alone: gradients go to the optimizer as they are computed
  UpdateGate gate_;
  std::map<const CompiledModel*, std::shared_ptr<Reductions>> reductions_;
  ReplicaMeeting meeting_;
  StepTiming timing_;
  CompiledModel* full_model_ = nullptr;  // of a batch that is not short
  std::vector<Array> no_batch_;          // zeros of its signature, where replicas meet

  // Of the step under way:
  StepMoment moment_;
  SampleCount samples_;
  std::span<const Batch> batches_;
  std::vector<CompiledModel*> models_;  // of this process's replicas; null for one without a batch
  CompiledModel* any_model_ = nullptr;
  Reductions* current_ = nullptr;
  StepValues values_;
};

}  // namespace mox::internal
