// What changes the variables in place of the optimizer, where that takes more than one gradient at a time: a
// rule sees all gradients of a step, and may ask for the loss that the same batch has with other values.
#pragma once

#include <span>
#include <string>

#include "runtime/base/function_ref.h"

namespace mox::internal {

class StepRule {
 public:
  struct Moment {
    std::span<const std::string> variables;       // those that have a gradient
    std::span<const std::span<float>> gradients;  // of each
    double gradient_scale = 1;                    // what they lack to be those of the mean loss
    double loss = 0;                              // the mean over all samples of the global batch
    // The same with what the variables hold when it is called: a forward pass of the step's batch on all
    // lanes of all ranks, which draws the same random numbers and changes nothing. All ranks
    // call it together.
    FunctionRef<double()> loss_now;
  };

  virtual ~StepRule() = default;
  // Changes the variables. On the thread that runs the step, while no lane computes; on all ranks together.
  virtual void apply(const Moment& moment) = 0;
};

}  // namespace mox::internal
