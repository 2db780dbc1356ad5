// Keeps the meaning of a run's labels beside its checkpoints, and compares it wherever they are used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "moxing/hooks/hook.h"

namespace mox {

// TRAIN: writes log_dir/labels.txt, "0: daisy" and so on, when a training starts; of the ranks of a job, rank
// 0 does. A run that is continued with other names, or in another order, throws DataError before its first
// step: what the model has learned would be called by wrong names. One that starts from all variables of a
// run with as many classes of other names (checkpoint_path) gets a warning. EVAL and PREDICT: throws
// DataError in the same way if `names`, those of the data, are not those of the checkpoint's run (labels.txt
// beside the checkpoint, else in log_dir). No names (data without labels in PREDICT) are not compared.
std::shared_ptr<Hook> label_names_hook(std::vector<std::string> names);

}  // namespace mox
