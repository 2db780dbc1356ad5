// Options of Model selection: what is done with the numbers of evaluations during a training.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {
namespace {

// The options that say which number is followed, for each of those who follow one.
std::vector<Option> followed(const std::string& section, const std::string& what) {
  return {
      {.name = section + ".metric",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Model selection",
       .help = what},
      {.name = section + ".mode",
       .type = OptionType::kString,
       .default_value = "auto",
       .group = "Model selection",
       .help =
           "Whether larger (max) or smaller (min) values of the metric are better. auto: what is known of "
           "the metric, an error if nothing is.",
       .allowed = {"auto", "max", "min"}},
  };
}

std::vector<Option> waiting(const std::string& section, const std::string& what) {
  return {
      {.name = section + ".patience",
       .type = OptionType::kInteger,
       .default_value = int64_t{3},
       .group = "Model selection",
       .help = "Evaluations without improvement, one after the other, after which " + what + ".",
       .minimum = 1},
      {.name = section + ".min_change",
       .type = OptionType::kNumber,
       .default_value = 0.0,
       .group = "Model selection",
       .help = "How much better a value must be to count as an improvement.",
       .minimum = 0},
  };
}

}  // namespace

std::vector<Option> options_of_selection() {
  std::vector<Option> all;
  const auto add = [&](std::vector<Option> options) {
    for (Option& option : options) all.push_back(std::move(option));
  };
  add(followed("keep_best",
               "The metric of evaluations by which the best state is kept, in log_dir/best, beside the "
               "checkpoints. Empty: none is."));
  add({{.name = "keep_best.restore",
        .type = OptionType::kBool,
        .default_value = false,
        .group = "Model selection",
        .help = "Whether the run ends with the best state: for its last evaluation, and for evaluations and "
                "predictions that take log_dir."}});
  add(followed("early_stopping",
               "The metric of evaluations that ends the training when it gets no better. Empty: none does."));
  add(waiting("early_stopping", "the training ends"));
  add(followed("plateau",
               "The metric of evaluations that lowers the learning rate when it gets no better. Empty: none "
               "does."));
  add(waiting("plateau", "the learning rate is multiplied by plateau.factor"));
  add({{.name = "plateau.factor",
        .type = OptionType::kNumber,
        .default_value = 0.1,
        .group = "Model selection",
        .help = "What the learning rate is multiplied by, in (0, 1).",
        .minimum = 0,
        .maximum = 1},
       {.name = "plateau.min_multiplier",
        .type = OptionType::kNumber,
        .default_value = 1e-4,
        .group = "Model selection",
        .help = "The learning rate is never multiplied by less than this in all.",
        .minimum = 0,
        .maximum = 1}});
  return all;
}

}  // namespace mox::internal
