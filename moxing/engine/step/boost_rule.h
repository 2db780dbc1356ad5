// Stage 2 of dimension-reduced training as the rule of a step.
#pragma once

#include <string_view>
#include <vector>

#include "moxing/boost/stage_two.h"
#include "moxing/engine/step/step_rule.h"
#include "moxing/model/variable_store.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {

// The momentum outside of the subspace among the slots of a checkpoint: a name that no variable's slot has.
inline constexpr std::string_view kResidualSlot = "/boost/residual";

class BoostRule : public StepRule {
 public:
  BoostRule(boost::StageTwo& stage, VariableStore& store) : stage_(stage), store_(store) {}

  void apply(const Moment& moment) override {
    std::vector<std::span<float>> values;
    for (const std::string& name : moment.variables) values.push_back(store_.get(name).values<float>());
    stage_.step(moment.variables, moment.gradients, moment.gradient_scale, moment.loss, values,
                moment.loss_now);
  }

 private:
  boost::StageTwo& stage_;
  VariableStore& store_;
};

// All threads of all lanes. `lanes` outlives them.
inline boost::Workers workers_of(LaneThreads& lanes, const Team& team) {
  if (lanes.size() == 1) return boost::workers_of(team);
  return [&lanes, team](int64_t count, FunctionRef<void(int64_t)> body) {
    const int64_t pieces = lanes.size();
    lanes.run([&](int lane) {
      const int64_t begin = count * lane / pieces, end = count * (lane + 1) / pieces;
      team.parallel_for(end - begin, 1, [&](int64_t first, int64_t last) {
        for (int64_t index = first; index < last; ++index) body(begin + index);
      });
    });
  };
}

}  // namespace mox::internal
