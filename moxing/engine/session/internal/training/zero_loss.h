// A loss that is 0 from the first step on, of which nothing is learnt.
#pragma once

#include <cstdint>
#include <string>

#include "moxing/hooks/hook.h"
#include "moxing/model/model_spec.h"

namespace mox::internal {

// Warns once where the loss was exactly 0 in every step of the first pass over the data, or of the first
// hundred steps where that is longer or of no known length, but of ten at least: a loss may pass through 0.
class ZeroLoss {
 public:
  // Regularisation is left out where log_info has the model's own loss.
  explicit ZeroLoss(const ModelSpec& spec);

  // All ranks see the same; rank 0 warns.
  void note(const StepResult& result, double steps_per_epoch);

 private:
  std::string name_;
  int64_t steps_ = 0;
  bool is_over_ = false;  // once a loss was another, or the warning is given
};

}  // namespace mox::internal
