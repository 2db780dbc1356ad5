// Options of Optimizer: the update rule and what bounds gradients.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_optimizer() {
  return {
      // No defaults here: what is not given is the program's own choice, and the configuration.yaml of a run
      // whose optimizer is a function of the program must not name another.
      {.name = "optimizer.name",
       .type = OptionType::kString,
       .default_value = {},
       .group = "Optimizer",
       .help = "The update rule. Not given: the program's, else sgd.",
       .allowed = {"sgd", "momentum", "adam", "adamw", "adagrad", "adadelta", "rmsprop", "ftrl"}},
      {.name = "optimizer.learning_rate",
       .type = OptionType::kNumberOrString,
       .default_value = {},
       .group = "Optimizer",
       .help = "The learning rate: a number, or a schedule over epochs such as "
               "\"5:0.1->0.4,10:0.4=>0.8,20:0.08\" "
               "(-> linear, => exponential). Not given: the program's, else 0.01.",
       .minimum = 0},
      {.name = "optimizer.momentum",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help =
           "Momentum, for the rules that have one (momentum, rmsprop). Not given: the rule's own default.",
       .minimum = 0,
       .maximum = 1},
      {.name = "optimizer.nesterov",
       .type = OptionType::kBool,
       .default_value = {},
       .group = "Optimizer",
       .help = "Nesterov's form of momentum, for the rule momentum. Not given: the rule's own default."},
      {.name = "optimizer.weight_decay",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = "Weight decay (L2, or decoupled for adamw). 0: none. Not given: the program's, else 0.",
       .minimum = 0},
      {.name = "freeze",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .group = "Optimizer",
       .help =
           "Variables in whose names one of these regular expressions is found are not trained: no "
           "gradient of them is computed, and batch normalisation of such a scale and offset keeps to its "
           "moving averages (frozen_batch_norm)."},
      {.name = "clip_gradient_norm",
       .type = OptionType::kNumber,
       .default_value = 0.0,
       .group = "Optimizer",
       .help =
           "Gradients are scaled down together so that their global norm is at most this. 0: no clipping.",
       .minimum = 0},
      {.name = "clip_gradient_value",
       .type = OptionType::kNumber,
       .default_value = 0.0,
       .group = "Optimizer",
       .help = "Every element of a gradient is clipped to [-value, value]. 0: no clipping.",
       .minimum = 0},
  };
}

}  // namespace mox::internal
