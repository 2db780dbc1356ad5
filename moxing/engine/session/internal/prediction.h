// run_mode EVAL and PREDICT.
#pragma once

#include "moxing/console/console.h"
#include "moxing/engine/session/internal/run_settings.h"

namespace mox::internal {

// Runs a trained model over the data of EVAL and prints metrics. Needs a checkpoint and throws
// FailedPrecondition without one.
RunResult run_evaluation(const RunSpec& spec, const RunSettings& settings, Console& console);

// The same over the data of PREDICT, in their order: hands outputs to output_fn and writes the file of
// predictions; of several ranks, rank 0 does so for all, unless settings.predictions.gathers is false.
RunResult run_prediction(const RunSpec& spec, const RunSettings& settings, Console& console);

}  // namespace mox::internal
