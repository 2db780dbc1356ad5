// Keeps the meaning of a run's labels beside its checkpoints, and compares it wherever they are used.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moxing/hooks/hook.h"

namespace mox {

// TRAIN: writes log_dir/labels.txt, "0: daisy" and so on, when a training starts; of the ranks of a job, rank
// 0 does. The names go into each checkpoint, too, but for such as are no UTF-8. A run that is continued with
// other names, or in another order, throws DataError before its first step: what the model has learned would
// be called by wrong names. One that starts from all variables of a run with as many classes of other names
// (checkpoint_path) gets a warning. EVAL and PREDICT: throws DataError in the same way if `names`, those of
// the data, are not those of the checkpoint's run (see trained_label_names); where nothing says what these
// are, a warning says so, unless `names` are 0, 1, 2 and so on. No names (data without labels in PREDICT) are
// not compared.
std::shared_ptr<Hook> label_names_hook(std::vector<std::string> names);

// The names that label_names_hook has kept in a checkpoint, or in that of a log_dir that is used (see
// load_trained). Empty for one without them, for a file of weights, and for what cannot be read. Throws
// InvalidArgument for a URL.
std::vector<std::string> kept_label_names(const std::string& path);

// The classes that a run was trained for, and what says so.
struct TrainedLabelNames {
  std::string place;
  std::vector<std::string> names;
};

// Of labels.txt in or beside `checkpoint` (of best/ also above it), else of the checkpoint itself, else of
// labels.txt in `log_dir`; an empty `checkpoint` means that of `log_dir`. Nothing where none of them says it.
// A labels.txt gives the classes other names than the checkpoint keeps, with a warning, but no other order:
// DataError, naming both, where the lists have names in common or differ in length. Numbers (0, 1, 2, ...) on
// either side contradict nothing.
std::optional<TrainedLabelNames> trained_label_names(const std::string& checkpoint,
                                                     const std::string& log_dir);

}  // namespace mox
