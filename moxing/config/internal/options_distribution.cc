// Options of Distribution: devices, ranks and what travels between them.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_distribution() {
  return {
      {.name = "num_devices",
       .type = OptionType::kNumberOrString,
       .default_value = 1.0,
       .group = "Distribution",
       .help = "Devices of a process: sets of cores that each compute batches of their own. auto: the number "
               "that trains most samples a second, measured before the first step and kept when the run is "
               "continued; without logical_replicas it also decides how many samples a step takes.",
       .allowed = {"auto"},
       .minimum = 1,
       .maximum = 4096},
      {.name = "threads_per_device",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Distribution",
       .help = "Threads of a device. 0: threads / num_devices.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "logical_replicas",
       .type = OptionType::kInteger,
       .default_value = int64_t{0},
       .group = "Distribution",
       .help =
           "The parts, of batch_size samples each, that the batch of a step is cut into, whatever computes "
           "them; with more than one, each is computed by one thread. 0: those of the checkpoint, else one a "
           "device.",
       .minimum = 0,
       .maximum = 1 << 20},
      {.name = "allow_inexact",
       .type = OptionType::kBool,
       .default_value = false,
       .group = "Distribution",
       .help =
           "Run on a number of devices over which the logical replicas cannot be spread evenly, with one "
           "replica a device, and with all vector instructions that there are, whatever the checkpoint was "
           "computed with: the result is not bit for bit that of the other placements."},
      {.name = "sync_batch_norm",
       .type = OptionType::kBool,
       .default_value = false,
       .group = "Distribution",
       .help = "Batch normalisation takes its mean and variance over the logical replicas of all devices and "
               "ranks instead of over each replica's own batch. All replicas of a process are then computed "
               "at the same time, each with memory of its own."},
      {.name = "scale_learning_rate",
       .type = OptionType::kString,
       .default_value = "none",
       .group = "Distribution",
       .help = "Multiply the learning rate by the number of logical replicas (linear), by its square root "
               "(sqrt), or not.",
       .allowed = {"none", "linear", "sqrt"}},
      {.name = "variable_update",
       .type = OptionType::kString,
       .default_value = "replicated_host",
       .group = "Distribution",
       .help = "Who holds the variables: each process one copy for all of its devices (replicated_host), "
               "each device one of its own (replicated), or rank 0, from whom all devices copy them at each "
               "step (parameter_server). The result is the same; the last two are there for comparison.",
       .allowed = {"replicated_host", "replicated", "parameter_server"}},
      {.name = "first_bucket_mb",
       .type = OptionType::kNumber,
       .default_value = 1.0,
       .group = "Distribution",
       .help = "Mebibytes of gradients after which the first message to the other ranks is sent, while the "
               "backward pass goes on.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "bucket_mb",
       .type = OptionType::kNumber,
       .default_value = 25.0,
       .group = "Distribution",
       .help = "Mebibytes of gradients in each further message.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "wire_dtype",
       .type = OptionType::kString,
       .default_value = "float32",
       .group = "Distribution",
       .help = "How gradients travel between ranks. bfloat16: half of the bytes; results then depend on the "
               "placement.",
       .allowed = {"float32", "bfloat16"}},
      {.name = "step_profile",
       .type = OptionType::kString,
       .default_value = "",
       .group = "Distribution",
       .help = "A file into which rank 0 writes what the steps of the run were made of, for mox forecast."},
      {.name = "stall_warning_s",
       .type = OptionType::kNumber,
       .default_value = 30.0,
       .group = "Distribution",
       .help = "A rank that the others wait for is named after this many seconds.",
       .minimum = 0.1},
      {.name = "stall_abort_s",
       .type = OptionType::kNumber,
       .default_value = 600.0,
       .group = "Distribution",
       .help = "The job ends when a rank has been waited for this many seconds.",
       .minimum = 0.1},
  };
}

}  // namespace mox::internal
