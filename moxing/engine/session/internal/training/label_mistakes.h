// Labels that train without an error and are not what was meant: those of a class side by side, and numbers
// that are no probability.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/data/pipeline.h"
#include "runtime/graph/graph.h"

namespace mox::internal {

class LabelMistakes {
 public:
  // The model that is trained. Looked at are labels of its cross entropies that are a component of the data,
  // in another shape or type perhaps.
  explicit LabelMistakes(const Graph& graph);

  // The batches of a step. Warns once, on rank 0, of batches of one class each, then of another one, in the
  // first pass over the data (or in 1,000 steps, where it is longer or of no known length); and of labels of
  // a sigmoid_cross_entropy outside of [0, 1] in the first ten steps.
  void note(const std::vector<Batch>& batches, double steps_per_epoch);

 private:
  struct Labels {
    size_t component = 0;
    SourceLocation where;
  };
  void look_at_classes(const Array& labels);
  void look_at_probabilities(const Array& labels);

  std::optional<Labels> classes_, probabilities_;
  std::map<int64_t, int64_t> batches_of_class_;  // that have no other class
  int64_t mixed_batches_ = 0;
  int64_t steps_ = 0;
};

}  // namespace mox::internal
