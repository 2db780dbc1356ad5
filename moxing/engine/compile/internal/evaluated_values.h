// What an evaluation takes from each batch: the values of log_info, and the inputs of metrics.
#pragma once

#include "moxing/engine/compile/compiled_model.h"

namespace mox::internal {

// Has all of it computed. A value of log_info whose name is that of a metric gives way to it.
void fetch_evaluated(const ModelSpec& spec, ModelBuild& build);

// Where the compiled model has it. Throws InvalidArgument for a number that would have the name of another.
EvaluatedValues evaluated_values(const CompiledModel& model);

}  // namespace mox::internal
