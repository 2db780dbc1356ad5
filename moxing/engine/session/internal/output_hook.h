// Hands the values of output_info to the program.
#pragma once

#include "moxing/engine/compile/compiled_model.h"
#include "moxing/engine/session/run_spec.h"

namespace mox::internal {

// Collects output_info of every step and calls `output_fn` when it is due and at the end. Of a model without
// output_info there is nothing to hand over, and it is not called.
std::shared_ptr<Hook> output_hook(OutputFn output_fn, const Interval& interval);

// A copy of the output_info of a model's last run.
OutputBatch copy_outputs(const CompiledModel& model);

}  // namespace mox::internal
