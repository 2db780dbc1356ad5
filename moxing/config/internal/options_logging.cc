// Options of Logging: what is said, and how often.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_logging() {
  return {
      {.name = "log_every_n_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{10},
       .group = "Logging",
       .help = "Steps between two log lines. 0: none.",
       .minimum = 0},
      {.name = "log_every_n_secs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Logging",
       .help =
           "Seconds between two log lines, which takes the place of steps that are not set. 0: not by time.",
       .minimum = 0},
      {.name = "log_every_n_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Logging",
       .help = "Passes over the training data between two log lines, which takes the place of steps that "
               "are not set. 0: not by epochs.",
       .minimum = 0},
      {.name = "save_summary_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{10},
       .group = "Logging",
       .help = "Steps between two records of the metrics in log_dir. 0: none.",
       .minimum = 0},
      {.name = "save_summary_secs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Logging",
       .help = "Seconds between two records of the metrics, which takes the place of steps that are not "
               "set. 0: not by time.",
       .minimum = 0},
      {.name = "save_summary_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Logging",
       .help = "Passes over the training data between two records of the metrics, which takes the place of "
               "steps that are not set. 0: not by epochs.",
       .minimum = 0},
      {.name = "output_every_n_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{1},
       .group = "Logging",
       .help = "Steps between two calls of output_fn. 0: none, but in PREDICT every step.",
       .minimum = 0},
      {.name = "output_every_n_secs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Logging",
       .help = "Seconds between two calls of output_fn in TRAIN, which takes the place of steps that are "
               "not set.",
       .minimum = 0},
      {.name = "output_every_n_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Logging",
       .help = "Passes over the training data between two calls of output_fn in TRAIN, which takes the "
               "place of steps that are not set.",
       .minimum = 0},
      {.name = "log_level",
       .type = OptionType::kString,
       .default_value = "info",
       .group = "Logging",
       .help = "The least severe messages that are printed.",
       .allowed = {"debug", "info", "warning", "error"}},
  };
}

}  // namespace mox::internal
