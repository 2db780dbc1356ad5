// Keeps the meaning of a run's labels beside its checkpoints.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "moxing/hooks/hook.h"

namespace mox {

// Writes log_dir/labels.txt, "0: daisy" and so on, when a training starts; of the ranks of a job, rank 0
// does. A run that is continued with other names, or in another order, throws DataError before its first
// step: what the model has learned would be called by wrong names.
std::shared_ptr<Hook> label_names_hook(std::vector<std::string> names);

}  // namespace mox
