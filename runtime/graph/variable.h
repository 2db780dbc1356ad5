// Variables: named values that outlive a step. A graph only refers to them by name; the values live in the
// host's VariableStore, once per process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/source_location.h"
#include "runtime/graph/tensor.h"

namespace mox {

struct VariableSpec {
  std::string name;  // with scopes: "conv1/weights"
  TensorType type;
  bool trainable = true;
  // Makes the first value from the run's seed; must depend on nothing else, so that it is
  // the same everywhere.
  std::function<Array(uint64_t seed)> initial_value;
  SourceLocation where;
};

// After the step, `variable` takes the value of `value` (the mean over replicas where there are several):
// moving averages of batch normalisation, for instance. `value` is computed in the graph from the old value.
struct AfterStepValue {
  Tensor variable;
  Tensor value;
};

}  // namespace mox
