// Options of Optimizer: the update rule and what bounds gradients.
#include <fmt/format.h>

#include <algorithm>

#include "moxing/config/internal/option_tables.h"
#include "moxing/config/optimizer_rows.h"

namespace mox::internal {
namespace {

std::vector<std::string> optimizer_names() {
#define MOX_ROW(name, ...) #name,
  return {MOX_OPTIMIZER_ROWS(MOX_ROW)};
#undef MOX_ROW
}

// "adam, adamw and rmsprop": the rules whose rows name the option.
std::string rules_of(std::string_view option) {
  std::vector<std::string> rules;
  const auto take = [&](const char* rule, std::initializer_list<std::string_view> options) {
    if (std::ranges::find(options, option) != options.end()) rules.emplace_back(rule);
  };
#define MOX_ROW(name, ...) take(#name, {__VA_ARGS__});
  MOX_OPTIMIZER_ROWS(MOX_ROW)
#undef MOX_ROW
  std::string text;
  for (size_t i = 0; i < rules.size(); ++i)
    text += (i == 0 ? "" : i + 1 == rules.size() ? " and " : ", ") + rules[i];
  return text;
}

}  // namespace

std::vector<Option> options_of_optimizer() {
  return {
      // No defaults here: what is not given is the program's own choice, and the configuration.yaml of a run
      // whose optimizer is a function of the program must not name another.
      {.name = "optimizer.name",
       .type = OptionType::kString,
       .default_value = {},
       .group = "Optimizer",
       .help = "The update rule. Not given: the program's, else sgd.",
       .allowed = optimizer_names()},
      {.name = "optimizer.learning_rate",
       .type = OptionType::kNumberOrString,
       .default_value = {},
       .group = "Optimizer",
       .help = "The learning rate: a number, or a schedule over epochs such as "
               "\"5:0.1->0.4,10:0.4=>0.8,20:0.08\" (-> linear, => exponential), or over steps: \"500 "
               "steps:0->0.1,2000:0.1\". Not given: the program's, else 0.01.",
       .minimum = 0},
      {.name = "optimizer.momentum",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("Momentum, for {}. Not given: the rule's own default.", rules_of("momentum")),
       .minimum = 0,
       .maximum = 1},
      {.name = "optimizer.nesterov",
       .type = OptionType::kBool,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("Nesterov's form of momentum, for {}. Not given: the rule's own default.",
                           rules_of("nesterov"))},
      {.name = "optimizer.weight_decay",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = "Weight decay (L2, or decoupled for adamw). 0: none. Not given: the program's, else 0.",
       .minimum = 0},
      {.name = "optimizer.beta1",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("Decay of the mean of the gradients, for {}. Not given: the program's, else 0.9.",
                           rules_of("beta1")),
       .minimum = 0,
       .maximum = 1},
      {.name = "optimizer.beta2",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format(
           "Decay of the mean of the squared gradients, for {}. Not given: the program's, else 0.999.",
           rules_of("beta2")),
       .minimum = 0,
       .maximum = 1},
      {.name = "optimizer.rho",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format(
           "Decay of the mean of the squared gradients, for {}. Not given: the rule's own default.",
           rules_of("rho")),
       .minimum = 0,
       .maximum = 1},
      {.name = "optimizer.epsilon",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("What is added to a denominator, for {}. Not given: the rule's own default.",
                           rules_of("epsilon")),
       .minimum = 0},
      {.name = "optimizer.centered",
       .type = OptionType::kBool,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("Whether {} divides by the standard deviation of the gradients. Not given: the "
                           "rule's own default.",
                           rules_of("centered"))},
      {.name = "optimizer.initial_accumulator",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format(
           "Where the sum of squared gradients begins, for {}. Not given: the rule's own default.",
           rules_of("initial_accumulator")),
       .minimum = 0},
      {.name = "optimizer.l1_regularization",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("Penalty on absolute values, for {}. Not given: the rule's own default.",
                           rules_of("l1_regularization")),
       .minimum = 0},
      {.name = "optimizer.l2_regularization",
       .type = OptionType::kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = fmt::format("Penalty on squares, for {}. Not given: the rule's own default.",
                           rules_of("l2_regularization")),
       .minimum = 0},
      {.name = "optimizer.groups",
       .type = OptionType::kStringList,
       .default_value = {},
       .group = "Optimizer",
       .help =
           "Variables that are trained otherwise, by patterns of their names (* any letters, ? one): the "
           "first that matches a variable says by what its learning rate is multiplied (0: it is frozen) and "
           "which weight decay it has; what it does not say stays with the program's groups. On the command "
           "line: \"pattern=trunk/* learning_rate_multiplier=0.1,pattern=*/bias weight_decay=0\".",
       .fields = {"pattern", "learning_rate_multiplier", "weight_decay"}},
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
