#include "moxing/config/options.h"

namespace mox {
namespace {

constexpr OptionType kBool = OptionType::kBool;
constexpr OptionType kInteger = OptionType::kInteger;
constexpr OptionType kNumber = OptionType::kNumber;
constexpr OptionType kString = OptionType::kString;

std::vector<Option> declare() {
  const int64_t zero = 0;
  const std::string empty;
  return {
      {.name = "config",
       .type = kString,
       .default_value = empty,
       .group = "Files",
       .help = "A YAML file that sets options by their names.",
       .command_line_only = true},
      {.name = "data_url",
       .type = kString,
       .default_value = empty,
       .group = "Files",
       .help = "Where the data set is: a file or a directory."},
      {.name = "train_url",
       .type = kString,
       .default_value = empty,
       .group = "Files",
       .help = "Where the run writes its results: a directory, made if it does not exist."},
      {.name = "log_dir",
       .type = kString,
       .default_value = empty,
       .group = "Files",
       .help = "Directory of logs and checkpoints; a checkpoint found in it is continued. Empty: train_url."},
      {.name = "checkpoint_path",
       .type = kString,
       .default_value = empty,
       .group = "Files",
       .help = "A checkpoint (or a directory with one) to start from when log_dir holds none. Empty: "
               "initialise."},

      {.name = "run_mode",
       .type = kString,
       .default_value = "train",
       .group = "Run",
       .help = "What the run does.",
       .allowed = {"train", "eval", "predict"}},
      {.name = "inter_mode",
       .type = kString,
       .default_value = "none",
       .group = "Run",
       .help = "What is interleaved with training.",
       .allowed = {"none", "eval"}},
      {.name = "max_number_of_steps",
       .type = kInteger,
       .default_value = zero,
       .group = "Run",
       .help = "The global step at which training ends, steps of earlier starts included. 0: no limit.",
       .minimum = 0},
      {.name = "max_epochs",
       .type = kInteger,
       .default_value = zero,
       .group = "Run",
       .help = "Training ends after this many passes over the training data. 0: no limit.",
       .minimum = 0},
      {.name = "eval_every_n_steps",
       .type = kInteger,
       .default_value = zero,
       .group = "Run",
       .help = "Training steps between two evaluations when inter_mode is eval. 0: only after the last step.",
       .minimum = 0},
      {.name = "eval_steps",
       .type = kInteger,
       .default_value = zero,
       .group = "Run",
       .help = "Batches that an evaluation takes, from the beginning of its data. 0: all.",
       .minimum = 0},
      {.name = "seed",
       .type = kInteger,
       .default_value = int64_t{1},
       .group = "Run",
       .help = "Seed of every random number: initial values, order of the data, dropout, augmentation.",
       .minimum = 0},

      {.name = "batch_size",
       .type = kInteger,
       .default_value = int64_t{32},
       .group = "Data",
       .help = "Samples in a batch of each device.",
       .minimum = 1},
      {.name = "eval_batch_size",
       .type = kInteger,
       .default_value = zero,
       .group = "Data",
       .help = "Samples in a batch of an evaluation. 0: batch_size.",
       .minimum = 0},
      {.name = "auto_batch",
       .type = kBool,
       .default_value = true,
       .group = "Data",
       .help = "Batch what input_fn returns. False: input_fn returns batches already."},
      {.name = "data_threads",
       .type = kInteger,
       .default_value = zero,
       .group = "Data",
       .help =
           "Threads that read and prepare data. 0: chosen in the first seconds, as few as keep the training "
           "from waiting, at most the cores that the process may use; the choice is logged, and given here "
           "it is "
           "pinned.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "data_memory_mb",
       .type = kInteger,
       .default_value = zero,
       .group = "Data",
       .help =
           "Mebibytes that batches in preparation and Dataset::cache may take together. 0: a quarter of the "
           "machine's memory.",
       .minimum = 0,
       .maximum = 1 << 30},
      {.name = "prefetch_batches",
       .type = kInteger,
       .default_value = int64_t{2},
       .group = "Data",
       .help = "Batches that are prepared ahead of the step that uses them.",
       .minimum = 1,
       .maximum = 65536},

      {.name = "threads",
       .type = kInteger,
       .default_value = zero,
       .group = "Compute",
       .help = "Threads that compute. 0: all cores that the process may use.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "conv_algorithm",
       .type = kString,
       .default_value = "auto",
       .group = "Compute",
       .help = "auto: convolutions may use Winograd's method, which multiplies less and rounds a little "
               "more. direct: "
               "they sum as the definition says.",
       .allowed = {"auto", "direct"}},
      {.name = "precision",
       .type = kString,
       .default_value = "fp32",
       .group = "Compute",
       .help = "fp32; or bf16: convolutions and matrix products take bfloat16 numbers and add them up in "
               "float32, and what lies "
               "between convolutions is kept in bfloat16. Variables, gradients of variables, statistics and "
               "losses stay float32.",
       .allowed = {"fp32", "bf16"}},
      {.name = "loss_scale",
       .type = OptionType::kNumberOrString,
       .default_value = 1.0,
       .group = "Compute",
       .help = "The loss is multiplied by this number for the backward pass, and the gradients are divided "
               "by it; a step whose "
               "gradients are not finite is left out. dynamic: a number that grows until gradients overflow, "
               "and shrinks when "
               "they do. 1: off.",
       .allowed = {"dynamic"},
       .minimum = 1,
       .maximum = 1 << 24},
      {.name = "recompute",
       .type = kString,
       .default_value = "auto",
       .group = "Compute",
       .help =
           "normalisation: what a batch normalisation and its activation gave to a convolution is "
           "computed again in the "
           "backward pass instead of kept for it, to the same bits: less memory, a little more time. "
           "auto: where that takes little beside the convolution, if it frees 32 MiB in all; both of them "
           "also make the cheap convolutions of shortcuts again. none: everything is kept.",
       .allowed = {"auto", "none", "normalisation"}},
      {.name = "print_plan",
       .type = kBool,
       .default_value = false,
       .group = "Compute",
       .help = "Print the compiled plan (ops, shapes, layouts, fusions, FLOPs, bytes, memory) and exit."},

      {.name = "num_devices",
       .type = OptionType::kNumberOrString,
       .default_value = 1.0,
       .group = "Distribution",
       .help = "Devices of a process: sets of cores that each compute batches of their own. auto: the number "
               "that trains most "
               "samples a second, measured before the first step and kept when the run is continued; without "
               "logical_replicas it also decides how many samples a step takes.",
       .allowed = {"auto"},
       .minimum = 1,
       .maximum = 4096},
      {.name = "threads_per_device",
       .type = kInteger,
       .default_value = zero,
       .group = "Distribution",
       .help = "Threads of a device. 0: threads / num_devices.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "logical_replicas",
       .type = kInteger,
       .default_value = zero,
       .group = "Distribution",
       .help =
           "The parts, of batch_size samples each, that the batch of a step is cut into, whatever computes "
           "them; with "
           "more than one, each is computed by one thread. 0: those of the checkpoint, else one a device.",
       .minimum = 0,
       .maximum = 1 << 20},
      {.name = "allow_inexact",
       .type = kBool,
       .default_value = false,
       .group = "Distribution",
       .help =
           "Run on a number of devices over which the logical replicas cannot be spread evenly, with one "
           "replica a device, and with all vector instructions that there are, whatever the checkpoint was "
           "computed with: the result is not bit for bit that of the other placements."},
      {.name = "sync_batch_norm",
       .type = kBool,
       .default_value = false,
       .group = "Distribution",
       .help = "Batch normalisation takes its mean and variance over the logical replicas of all devices and "
               "ranks instead of "
               "over each replica's own batch. All replicas of a process are then computed at the same time, "
               "each with "
               "memory of its own."},
      {.name = "scale_learning_rate",
       .type = kString,
       .default_value = "none",
       .group = "Distribution",
       .help = "Multiply the learning rate by the number of logical replicas (linear), by its square root "
               "(sqrt), or not.",
       .allowed = {"none", "linear", "sqrt"}},
      {.name = "variable_update",
       .type = kString,
       .default_value = "replicated_host",
       .group = "Distribution",
       .help = "Who holds the variables: each process one copy for all of its devices (replicated_host), "
               "each device one of "
               "its own (replicated), or rank 0, from whom all devices copy them at each step "
               "(parameter_server). The "
               "result is the same; the last two are there for comparison.",
       .allowed = {"replicated_host", "replicated", "parameter_server"}},
      {.name = "first_bucket_mb",
       .type = kNumber,
       .default_value = 1.0,
       .group = "Distribution",
       .help = "Mebibytes of gradients after which the first message to the other ranks is sent, while the "
               "backward pass "
               "goes on.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "bucket_mb",
       .type = kNumber,
       .default_value = 25.0,
       .group = "Distribution",
       .help = "Mebibytes of gradients in each further message.",
       .minimum = 0,
       .maximum = 4096},
      {.name = "wire_dtype",
       .type = kString,
       .default_value = "float32",
       .group = "Distribution",
       .help = "How gradients travel between ranks. bfloat16: half of the bytes; results then depend on the "
               "placement.",
       .allowed = {"float32", "bfloat16"}},
      {.name = "step_profile",
       .type = kString,
       .default_value = empty,
       .group = "Distribution",
       .help = "A file into which rank 0 writes what the steps of the run were made of, for mox forecast."},
      {.name = "stall_warning_s",
       .type = kNumber,
       .default_value = 30.0,
       .group = "Distribution",
       .help = "A rank that the others wait for is named after this many seconds.",
       .minimum = 0.1},
      {.name = "stall_abort_s",
       .type = kNumber,
       .default_value = 600.0,
       .group = "Distribution",
       .help = "The job ends when a rank has been waited for this many seconds.",
       .minimum = 0.1},

      // No defaults here: what is not given is the program's own choice, and the configuration.yaml of a run
      // whose optimizer is a function of the program must not name another.
      {.name = "optimizer.name",
       .type = kString,
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
       .type = kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help =
           "Momentum, for the rules that have one (momentum, rmsprop). Not given: the rule's own default.",
       .minimum = 0,
       .maximum = 1},
      {.name = "optimizer.nesterov",
       .type = kBool,
       .default_value = {},
       .group = "Optimizer",
       .help = "Nesterov's form of momentum, for the rule momentum. Not given: the rule's own default."},
      {.name = "optimizer.weight_decay",
       .type = kNumber,
       .default_value = {},
       .group = "Optimizer",
       .help = "Weight decay (L2, or decoupled for adamw). 0: none. Not given: the program's, else 0.",
       .minimum = 0},
      {.name = "clip_gradient_norm",
       .type = kNumber,
       .default_value = 0.0,
       .group = "Optimizer",
       .help =
           "Gradients are scaled down together so that their global norm is at most this. 0: no clipping.",
       .minimum = 0},
      {.name = "clip_gradient_value",
       .type = kNumber,
       .default_value = 0.0,
       .group = "Optimizer",
       .help = "Every element of a gradient is clipped to [-value, value]. 0: no clipping.",
       .minimum = 0},

      {.name = "save_model_steps",
       .type = kInteger,
       .default_value = zero,
       .group = "Checkpoints",
       .help =
           "Steps between two checkpoints. 0: by time only (save_model_secs). The last step is always saved.",
       .minimum = 0},
      {.name = "save_model_secs",
       .type = kInteger,
       .default_value = int64_t{600},
       .group = "Checkpoints",
       .help = "Seconds between two checkpoints. 0: by steps only (save_model_steps).",
       .minimum = 0},
      {.name = "keep_checkpoints",
       .type = kInteger,
       .default_value = int64_t{5},
       .group = "Checkpoints",
       .help = "How many of the newest checkpoints are kept.",
       .minimum = 1},
      {.name = "keep_checkpoint_every_n_steps",
       .type = kInteger,
       .default_value = zero,
       .group = "Checkpoints",
       .help = "Checkpoints at multiples of this many steps are kept for good, beside the newest. 0: none.",
       .minimum = 0},

      {.name = "log_every_n_steps",
       .type = kInteger,
       .default_value = int64_t{10},
       .group = "Logging",
       .help = "Steps between two log lines. 0: none.",
       .minimum = 0},
      {.name = "save_summary_steps",
       .type = kInteger,
       .default_value = int64_t{10},
       .group = "Logging",
       .help = "Steps between two records of the metrics in log_dir. 0: none.",
       .minimum = 0},
      {.name = "output_every_n_steps",
       .type = kInteger,
       .default_value = int64_t{1},
       .group = "Logging",
       .help = "Steps between two calls of output_fn. 0: none, but in PREDICT every step.",
       .minimum = 0},
      {.name = "log_level",
       .type = kString,
       .default_value = "info",
       .group = "Logging",
       .help = "The least severe messages that are printed.",
       .allowed = {"debug", "info", "warning", "error"}},
  };
}

}  // namespace

const std::vector<Option>& built_in_options() {
  static const std::vector<Option> options = declare();
  return options;
}

}  // namespace mox
