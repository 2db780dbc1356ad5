// Options of Data: how samples become batches.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_data() {
  return {
      {.name = "batch_size",
       .type = OptionType::kInteger,
       .default_value = int64_t{32},
       .group = "Data",
       .help = "Samples in a batch of each device.",
       .minimum = 1},
      {.name = "eval_batch_size",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Data",
       .help = "Samples in a batch of an evaluation. 0: batch_size.",
       .minimum = 0},
      {.name = "auto_batch",
       .type = OptionType::kBool,
       .default_value = true,
       .group = "Data",
       .help = "Batch what input_fn returns. False: input_fn returns batches already."},
      {.name = "data_threads",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Data",
       .help =
           "Threads that read and prepare data. 0: chosen in the first seconds, as few as keep the training "
           "from waiting, at most the cores that the process may use; the choice is logged, and given here "
           "it is pinned.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "data_memory_mb",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Data",
       .help =
           "Mebibytes that batches in preparation, Dataset::cache, the buffers of Dataset::shuffle, and images "
           "and rows of .npy files that are kept in memory may take together on each machine, in all pipelines "
           "of all ranks there. Images and rows stop at three quarters of it. 0: a quarter of the machine's "
           "memory, or of what its container, its control group or ulimit (-v, -d) lets it have.",
       .minimum = 0,
       .maximum = 1 << 30},
      {.name = "prefetch_batches",
       .type = OptionType::kInteger,
       .default_value = int64_t{2},
       .group = "Data",
       .help = "Batches that are prepared ahead of the step that uses them.",
       .minimum = 1,
       .maximum = 65536},
  };
}

}  // namespace mox::internal
