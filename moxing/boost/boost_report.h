// What stage 2 has brought: a table at the end of the run.
#pragma once

#include <memory>

#include "moxing/boost/stage_two.h"
#include "moxing/hooks/hook.h"

namespace mox::boost {

// Evaluates before stage 2, after each pass over the data within it, and after its last step, where the run
// has an EVAL side; else the mean loss of the training steps since the row before stands in the table.
// Forward-equivalents are those of stage 2: a step counts three, forward and backward, and a trial one.
// `stage` outlives the hook's calls.
std::shared_ptr<Hook> boost_report_hook(const StageTwo& stage);

}  // namespace mox::boost
