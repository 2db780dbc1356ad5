// Options of Files: where things are.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_files() {
  return {
      {.name = "config",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Files",
       .help = "A YAML file that sets options by their names.",
       .command_line_only = true},
      {.name = "data_url",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Files",
       .help = "Where the data set is: a file or a directory, here or in an object store (s3://BUCKET/KEY): "
               "then it is copied to this machine, or read there by programs with the flag data.cache."},
      {.name = "train_url",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Files",
       .help =
           "Where the run writes its results: a directory, made if it does not exist, here or in an object "
           "store."},
      {.name = "log_dir",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Files",
       .help = "Directory of logs and checkpoints; a checkpoint found in it is continued. Empty: train_url."},
      {.name = "checkpoint_path",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Files",
       .help =
           "A checkpoint (or a directory with one): where a training starts whose log_dir holds none, and "
           "what is evaluated or predicts. Empty: log_dir's."},
  };
}

}  // namespace mox::internal
