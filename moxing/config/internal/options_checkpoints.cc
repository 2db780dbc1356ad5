// Options of Checkpoints, Snapshots: what of a run is kept on disk, and when.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_checkpoints() {
  return {
      {.name = "save_model_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Checkpoints",
       .help =
           "Steps between two checkpoints. 0: by time only (save_model_secs). The last step is always saved.",
       .minimum = 0},
      {.name = "save_model_secs",
       .type = OptionType::kInteger,
       .default_value = int64_t{600},
       .group = "Checkpoints",
       .help = "Seconds between two checkpoints. 0: by steps only (save_model_steps).",
       .minimum = 0},
      {.name = "save_model_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Checkpoints",
       .help = "Passes over the training data between two checkpoints. 0: not by epochs.",
       .minimum = 0},
      {.name = "keep_checkpoints",
       .type = OptionType::kInteger,
       .default_value = int64_t{5},
       .group = "Checkpoints",
       .help = "How many of the newest checkpoints are kept.",
       .minimum = 1},
      {.name = "keep_checkpoint_every_n_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Checkpoints",
       .help = "Checkpoints at multiples of this many steps are kept for good, beside the newest. 0: none.",
       .minimum = 0},
      {.name = "keep_checkpoint_every_n_secs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Checkpoints",
       .help = "The first checkpoint so many seconds after the start of the run, or after the last one that "
               "time has kept, is kept for good, beside the newest. 0: not by time.",
       .minimum = 0},
      {.name = "keep_checkpoint_every_n_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Checkpoints",
       .help = "The first checkpoint after each such number of passes over the training data is kept for "
               "good, beside the newest. 0: not by epochs.",
       .minimum = 0},

      {.name = "checkpoint_include_patterns",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .group = "Checkpoints",
       .help =
           "Of the variables of checkpoint_path, a training starts from those in whose names one of these "
           "regular expressions is found. Empty: all."},
      {.name = "checkpoint_exclude_patterns",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .group = "Checkpoints",
       .help =
           "A training does not take the variables of checkpoint_path in whose names one of these regular "
           "expressions is found: they begin with their initial values."},
      {.name = "checkpoint_rename",
       .type = OptionType::kStringList,
       .default_value = std::vector<std::string>{},
       .group = "Checkpoints",
       .help =
           "Pairs \"PATTERN -> REPLACEMENT\": what a regular expression finds in the names of the variables "
           "of checkpoint_path is replaced, one pair after the other, before the patterns above look at "
           "them. $1: the expression's first group."},
      {.name = "on_shape_mismatch",
       .type = OptionType::kString,
       .default_value = "refuse",
       .group = "Checkpoints",
       .help =
           "What a training does with a variable that has another shape in checkpoint_path. refuse: it is "
           "an error. initialise: it begins with its initial value.",
       .allowed = {"refuse", "initialise"}},

      {.name = "snapshots.every_n_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "Passes over the training data between two snapshots: the trained variables alone, beside the "
               "checkpoints. 0: not by passes.",
       .minimum = 0},
      {.name = "snapshots.every_n_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "Steps between two snapshots. 0: not by steps.",
       .minimum = 0},
      {.name = "snapshots.every_n_secs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "Seconds between two snapshots. 0: not by time.",
       .minimum = 0},
      {.name = "snapshots.from_epoch",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "No snapshot is written before so many passes over the training data are done.",
       .minimum = 0},
      {.name = "snapshots.keep",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "How many of the newest snapshots are kept. 0: all.",
       .minimum = 0},
      {.name = "snapshots.directory",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Snapshots",
       .help = "Where snapshots are written. Empty: log_dir/snapshots."},
  };
}

}  // namespace mox::internal
