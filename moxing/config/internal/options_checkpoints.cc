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

      {.name = "snapshots.every_n_epochs",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "Passes over the training data between two snapshots: the trained variables alone, beside the "
               "checkpoints. 0: "
               "not by passes.",
       .minimum = 0},
      {.name = "snapshots.every_n_steps",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Snapshots",
       .help = "Steps between two snapshots. 0: not by steps.",
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
