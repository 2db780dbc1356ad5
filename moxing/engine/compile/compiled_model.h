// A model function compiled for one mode and one batch signature.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/engine/compile/exchanges.h"
#include "moxing/engine/compile/model_arithmetic.h"
#include "moxing/hooks/hook.h"
#include "moxing/model/model_spec.h"
#include "moxing/model/training_facts.h"
#include "moxing/model/variable_store.h"
#include "runtime/data/pipeline.h"
#include "runtime/exec/plan_instance.h"

namespace mox::internal {

// What an EVAL model computes beside its fetches' own names.
struct EvaluatedValues {
  // A value of log_info: the index of its fetch, what it is called in an evaluation, and by how much
  // constants divide it for each sample of the batch (internal/sample_means.h).
  struct Mean {
    size_t fetch = 0;
    std::string name;
    double sum_divisor = 0;
    // Whether it may be the same value in a batch of another size.
    bool is_like(const Mean& other) const {
      return name == other.name &&
             std::abs(sum_divisor - other.sum_divisor) <= 1e-5 * std::max(sum_divisor, other.sum_divisor);
    }
    bool operator==(const Mean&) const = default;
  };
  // A metric of the spec, by its place there: the indices of what it sees.
  struct Measure {
    std::vector<size_t> inputs;
    std::optional<size_t> weights;
    bool operator==(const Measure&) const = default;
  };
  std::vector<Mean> means;
  std::vector<Measure> measures;
  bool operator==(const EvaluatedValues&) const = default;
};

struct CompiledModel {
  std::unique_ptr<Graph> graph;
  ModelSpec spec;
  std::shared_ptr<const Plan> plan;
  Team team;                               // that computes it: the compiler's, or one thread of it
  std::unique_ptr<PlanInstance> instance;  // of lane 0
  std::vector<std::unique_ptr<PlanInstance>> further_instances;  // of the other lanes
  std::vector<std::string> fetch_names;  // of the plan's fetches; kTrainedLoss first in TRAIN
  std::map<std::string, size_t, std::less<>> fetch_places;  // of these names
  std::vector<std::string> gradient_variables;              // of the plan's gradients
  std::vector<TensorType> signature;
  std::vector<Exchange> exchanges;                               // TRAIN
  EvaluatedValues evaluated;                                     // in EVAL
  Tensor trained_loss;                                           // TRAIN
  std::vector<std::unique_ptr<PlanInstance>> forward_instances;  // of each lane; see make_forward_only

  // The index of a fetch; throws NotFound naming those that exist.
  size_t fetch_index(std::string_view name) const;
  const Array& fetched(std::string_view name) const { return instance->fetched(fetch_index(name)); }
  PlanInstance& of_lane(int lane) { return lane == 0 ? *instance : *further_instances[lane - 1]; }
  PlanInstance& forward_of_lane(int lane) { return *forward_instances[lane]; }
};

// Compiles on demand and keeps what it has compiled: one model a signature.
class ModelCompiler {
 public:
  // `begin` is called for each graph before it is compiled (the hooks' begin).
  // `lanes`: how many instances each model gets. `variable`: what the instances of a lane read as a variable;
  // the store's if it is empty.
  ModelCompiler(ModelFn model_fn, ModeKeys mode, VariableStore& store, const Team& team,
                const Arithmetic& arithmetic, std::function<void(ModelBuild&, const ModelSpec&)> begin = {},
                int lanes = 1, std::function<Array(int lane, std::string_view name)> variable = {});

  // Plans from now on are compiled with CompileOptions::gradients_in_parts.
  void take_gradients_in_parts() { gradients_in_parts_ = true; }

  // The loss of plans from now on is multiplied by `scale`, a scalar float32 that is read in each run, before
  // its gradients are taken; what is fetched as kTrainedLoss is not.
  void scale_loss(const Array& scale) { loss_scale_ = scale; }

  // What layers are told of the training (is_short_batch is found out here); variables that the facts call
  // frozen get no gradient. `normalises_frozen`: batch normalisation that is not trained goes on as
  // if it were.
  void set_training(TrainingFacts facts, bool normalises_frozen) {
    training_ = std::move(facts);
    normalises_frozen_ = normalises_frozen;
  }

  // The model for a batch of these component types. Throws what model_fn throws, and InvalidArgument if its
  // answer cannot be used in this mode.
  CompiledModel& for_signature(const std::vector<TensorType>& signature);
  CompiledModel& for_batch(const Batch& batch);

  // Unless it has been done: makes instances that compute the trained loss of the same graph, their only
  // fetch, and nothing else: no gradients, no updates of variables. Random numbers are those of
  // the training step.
  void make_forward_only(CompiledModel& model) const;

 private:
  std::unique_ptr<CompiledModel> compile(const std::vector<TensorType>& signature);
  void build(CompiledModel& model);
  CompileOptions compile_options() const;
  std::unique_ptr<PlanInstance> instance_of(const std::shared_ptr<const Plan>& plan, const Team& team,
                                            int lane) const;

  ModelFn model_fn_;
  ModeKeys mode_;
  VariableStore& store_;
  const Team& team_;
  Arithmetic arithmetic_;
  bool gradients_in_parts_ = false;
  Array loss_scale_;  // undefined: none
  TrainingFacts training_;
  bool normalises_frozen_ = false;
  std::vector<std::string> var_scopes_;  // of the spec, once it is known
  std::function<void(ModelBuild&, const ModelSpec&)> begin_;
  int lanes_;
  std::function<Array(int, std::string_view)> variable_;
  std::vector<std::unique_ptr<CompiledModel>> models_;
};

}  // namespace mox::internal
