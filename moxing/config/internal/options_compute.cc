// Options of Compute: how the arithmetic is done.
#include "moxing/config/internal/option_tables.h"

namespace mox::internal {

std::vector<Option> options_of_compute() {
  return {
      {.name = "threads",
       .type = OptionType::kNumberOrString,
       .default_value = 0.0,
       .group = "Compute",
       .help =
           "Threads that compute. 0: as many as OMP_NUM_THREADS says, else one for each core that the "
           "process may use; and one alone for a plan whose instructions are too small to be shared out. "
           "auto: all of them, half, a quarter ... or one, whichever trains most samples a second, measured "
           "before the first step and kept when the run is continued.",
       .allowed = {"auto"},
       .minimum = 0,
       .maximum = 4096},
      {.name = "conv_algorithm",
       .type = OptionType::kString,
       .default_value = "auto",
       .group = "Compute",
       .help = "auto: convolutions may use Winograd's method, which multiplies less and rounds a little "
               "more, by a rule over their shapes. direct: they sum as the definition says. measured: those "
               "sum directly which do it clearly faster on this machine, found out in some seconds before a "
               "training and kept when it is continued; what only answers takes the rule.",
       .allowed = {"auto", "direct", "measured"}},
      {.name = "conv_error",
       .type = OptionType::kNumber,
       .default_value = 0.01,
       .group = "Compute",
       .help =
           "Of conv_algorithm auto and measured: the largest error of a convolution by Winograd's method, as a "
           "part of its result's largest magnitude. Convolutions whose bound (docs/precision.md) is above it "
           "sum directly. Default: all are below it; in fp32 1e-5 keeps the method for up to about 40 "
           "channels.",
       .minimum = 0,
       .maximum = 0.01},
      {.name = "precision",
       .type = OptionType::kString,
       .default_value = "fp32",
       .group = "Compute",
       .help = "fp32; or bf16: convolutions and matrix products take bfloat16 numbers and add them up in "
               "float32, and what lies between convolutions is kept in bfloat16. Variables, gradients of "
               "variables, statistics and losses stay float32.",
       .allowed = {"fp32", "bf16"}},
      {.name = "loss_scale",
       .type = OptionType::kNumberOrString,
       .default_value = 1.0,
       .group = "Compute",
       .help = "The loss is multiplied by this number for the backward pass, and the gradients are divided "
               "by it; a step whose gradients are not finite is left out (drop_overflow_update). dynamic: a "
               "number that grows until gradients overflow, and shrinks when they do. 1: off.",
       .allowed = {"dynamic"},
       .minimum = 1,
       .maximum = 1 << 24},
      {.name = "drop_overflow_update",
       .type = OptionType::kBool,
       .default_value = true,
       .group = "Compute",
       .help =
           "Whether a step whose gradients are not finite is left out, where loss_scale is a number above "
           "1. false: they are not looked at, every update is applied, and a loss that is not finite "
           "after it ends the run."},
      {.name = "recompute",
       .type = OptionType::kString,
       .default_value = "auto",
       .group = "Compute",
       .help =
           "normalisation: what a batch normalisation and its activation gave to a convolution is computed "
           "again in the backward pass instead of kept for it, to the same bits: less memory, a little more "
           "time. auto: where that takes little beside the convolution, if it frees 32 MiB in all; both of "
           "them also make the cheap convolutions of shortcuts again. none: everything is kept.",
       .allowed = {"auto", "none", "normalisation"}},
      {.name = "frozen_batch_norm",
       .type = OptionType::kString,
       .default_value = "inference",
       .group = "Compute",
       .help = "Batch normalisation in TRAIN whose scale and offset are not trained (freeze, var_scopes, a "
               "learning rate times 0). inference: by its moving averages, which stay. training: by the "
               "batch; they go on.",
       .allowed = {"inference", "training"}},
      {.name = "print_plan",
       .type = OptionType::kBool,
       .default_value = false,
       .group = "Compute",
       .help = "Print the compiled plan (ops, shapes, layouts, fusions, FLOPs, bytes, memory) and exit."},
  };
}

}  // namespace mox::internal
