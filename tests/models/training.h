// Trains a network of the zoo step by step, with everything that a step computes in view.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/zoo/zoo.h"
#include "moxing/model/variable_store.h"
#include "ops/fusion/default_rules.h"
#include "runtime/exec/plan_instance.h"

namespace mox {

class Training {
 public:
  // The images and labels are the batch of every step. `values`: of all variables.
  Training(std::string_view network, const NetworkOptions& options, Array images, Array labels, ModeKeys mode,
           std::span<const NamedArray> values, int threads, Precision precision = Precision::kFloat32,
           bool direct_convolutions = false);

  // One forward and backward pass (in TRAIN), without changing a variable.
  void compute();
  // SGD with momentum 0.9 (as PyTorch's: v = 0.9 v + g, w -= rate v) and the moving averages.
  void update(double learning_rate);

  double loss() const { return instance_->fetched(0).item(); }
  const Array& logits() const { return instance_->fetched(1); }
  // Undefined where the variable has no gradient.
  Array gradient(std::string_view variable) const;
  Array variable(std::string_view name) const { return store_.get(name); }
  size_t variables() const { return store_.all().size(); }

 private:
  struct Parameter {
    std::string name;
    Array value, momentum;
  };

  Team team_;
  VariableStore store_{0};
  std::vector<Array> batch_;
  Graph graph_;
  std::unique_ptr<PlanInstance> instance_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Parameter> parameters_;
  int64_t step_ = 0;
};

}  // namespace mox
