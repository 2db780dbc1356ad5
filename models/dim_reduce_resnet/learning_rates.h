// The learning rates of MindSpore's ResNet (lr_generator.py): one for each step, by the name of the decay.
#pragma once

#include <moxing/schedules/schedule.h>

#include <string>

namespace dim_reduce_resnet {

struct LearningRates {
  std::string decay = "linear";  // steps, poly, cosine, linear
  double initial = 0, highest = 0.1, last = 0;
  double warm_up_epochs = 0;  // from `initial` to `highest`; `steps` has none
  double epochs = 90;         // of the whole training
};

// With t the step, W the steps of the warm-up and T all steps:
//   steps    highest until 0.3 T, a tenth until 0.6 T, a hundredth until 0.8 T, then a thousandth
//   poly     highest (1 - (t - W) / (T - W))^2
//   cosine   last + (highest - last) (1 + cos(pi (t - W) / (T - W))) / 2
//   linear   highest - (highest - last) (t - W) / (T - W)
// W and T are rounded down to whole steps. The warm-up is a straight line that reaches `highest` at step W,
// for cosine one step sooner. After T steps the rate of the last one stays. Throws InvalidArgument for
// another decay, for steps with a warm-up, for numbers below 0 and for a warm-up that is not shorter
// than the training.
mox::Schedule learning_rates(const LearningRates& options);

}  // namespace dim_reduce_resnet
