// Predictions that are no numbers: what a model makes of inputs beyond what it has learnt from.
#pragma once

#include <cstdint>
#include <string>

#include "moxing/prediction/output_batch.h"

namespace mox::internal {

class NotFiniteOutputs {
 public:
  void look_at(const OutputBatch& batch);
  // A warning, if there were any.
  void report() const;

 private:
  int64_t samples_ = 0, not_finite_ = 0;
  std::string first_;
};

}  // namespace mox::internal
