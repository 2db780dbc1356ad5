// Runs a trained model over the data of a mode: EVAL prints metrics, PREDICT hands outputs to output_fn.
#pragma once

#include "moxing/console/console.h"
#include "moxing/engine/session/internal/run_settings.h"
#include "runtime/base/team.h"

namespace mox::internal {

// Both need a checkpoint (log_dir's latest, else checkpoint_path) and throw FailedPrecondition without one.
RunResult run_evaluation(const RunSpec& spec, const RunSettings& settings, const Team& team,
                         Console& console);
RunResult run_prediction(const RunSpec& spec, const RunSettings& settings, const Team& team,
                         Console& console);

}  // namespace mox::internal
