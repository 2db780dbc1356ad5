// The variables of a training as a scheme (update_scheme.h) keeps them: where each lane reads them, and how
// the summed gradients of a step change them.
//
// In the order of a step: begin_step; prepare_lane, on each lane; then either the updater's `apply` for each
// gradient as it comes (applies_at_once) or `apply_all`; end_step.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/engine/step/parameter_updater.h"
#include "moxing/engine/step/step_moment.h"
#include "moxing/engine/step/update_scheme.h"
#include "moxing/model/variable_store.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/plan_instance.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {

class VariableScheme {
 public:
  // Makes an updater of the variables that `variable` gives. That of the process's own variables is made
  // first; the loss scale is its alone.
  using MakeUpdater = std::function<std::unique_ptr<ParameterUpdater>(ParameterUpdater::VariableOf variable,
                                                                      bool of_process)>;

  virtual ~VariableScheme() = default;
  VariableScheme(const VariableScheme&) = delete;
  VariableScheme& operator=(const VariableScheme&) = delete;

  // Of the process's variables: what checkpoints keep.
  ParameterUpdater& updater() { return *updater_; }
  const ParameterUpdater& updater() const { return *updater_; }
  Array host(std::string_view name) const { return store_.get(name); }

  // Whether each gradient is applied as soon as its sum is there, to the one copy that there is.
  virtual bool applies_at_once() const { return false; }
  // Whether this process applies gradients: with a server, rank 0 alone.
  virtual bool applies_here() const { return true; }

  // The variable as the plans of a lane read it, made on the first call. Throws
  // what VariableStore::get throws.
  virtual Array of_lane(int lane, std::string_view name) = 0;
  // As ParameterUpdater::declare; the numbers are those of every updater.
  virtual std::vector<size_t> declare(std::span<const std::string> variables);

  virtual void begin_step(const StepMoment& moment);
  // By the lane, before it computes.
  virtual void prepare_lane(int) {}
  // Applies the sum of each of `parameters`, which still lacks the factor `scale`. While no lane computes.
  virtual void apply_all(std::span<const size_t> parameters, std::span<const std::span<float>> gradients,
                         double scale, LaneThreads& lanes, const Team& team);
  // What has changed in a step.
  struct Changed {
    std::span<const std::string> by_gradients, after_step;
    PlanInstance* alone = nullptr;  // of the only replica: it has written its after-step values itself
  };
  // Brings all copies up to date. All ranks call it together.
  virtual void end_step(const Changed&) {}
  // The process's variable has changed in another way: all copies take its value.
  virtual void refresh(std::string_view) {}

 protected:
  VariableScheme(VariableStore& store, const MakeUpdater& make);

 private:
  VariableStore& store_;
  std::unique_ptr<ParameterUpdater> updater_;
};

// `lanes` of each process. Throws what `make` throws.
std::unique_ptr<VariableScheme> make_variable_scheme(UpdateScheme scheme, VariableStore& store, int lanes,
                                                     Communicator& ranks,
                                                     const VariableScheme::MakeUpdater& make);

}  // namespace mox::internal
