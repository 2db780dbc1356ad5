// The optimizer of a run, given the program's and the configuration's wishes.
#pragma once

#include "moxing/optimizers/optimizer.h"

namespace mox::internal {

// `from_code` with what the YAML file or the command line sets of optimizer.* and clip_gradient_*. An
// optimizer that is not one of get_optimizer_fn's cannot be reconfigured: ConfigError names the options that
// were set.
OptimizerFn configured_optimizer(const OptimizerFn& from_code);

}  // namespace mox::internal
