// What a layer may know of the training that a graph is built for. The engine says it before it calls
// model_fn; a graph that is built otherwise has the defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/tensor.h"

namespace mox::internal {

struct TrainingFacts {
  // Whether the run leaves the values of a variable as they are, though it is trainable: it is outside of
  // var_scopes, the option freeze names it, or its learning rate is multiplied by 0. Empty: no
  // variable is frozen.
  std::function<bool(std::string_view variable, const Shape& shape)> is_frozen = {};
  // What is done with all trainable variables of the model, before gradients are made: it throws where the
  // run's settings do not fit them. Empty: nothing.
  std::function<void(const std::vector<std::pair<std::string, Shape>>& variables)> check_trainable = {};
  // Logical replicas that compute a step together; 0: not known.
  int64_t replicas = 0;
  // Whether batch normalisation takes its statistics from the batches of all replicas (sync_batch_norm).
  bool normalises_together = false;
  // The batch is the smaller one at the end of the data: others have more samples.
  bool is_short_batch = false;
};

// While alive, graphs on this thread are built for a training of which these facts are known.
class TrainingFactsScope {
 public:
  explicit TrainingFactsScope(TrainingFacts facts);
  ~TrainingFactsScope();
  TrainingFactsScope(const TrainingFactsScope&) = delete;
  TrainingFactsScope& operator=(const TrainingFactsScope&) = delete;

  // The variables that a layer has asked is_frozen of.
  const std::vector<Tensor>& asked() const { return asked_; }

 private:
  friend bool is_frozen(const Tensor& variable);
  friend const TrainingFacts& training_facts();
  static TrainingFactsScope*& innermost();

  TrainingFacts facts_;
  std::vector<Tensor> asked_;
  TrainingFactsScope* previous_;
};

const TrainingFacts& training_facts();
bool is_frozen(const Tensor& variable);  // by the facts; false if it is no variable

}  // namespace mox::internal
