// Options that say what a model is and how its data are read, in the checkpoints of a run: whatever uses
// these takes the same.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "moxing/hooks/hook.h"
#include "moxing/model/mode_keys.h"

namespace mox {

struct KeptOption {
  std::string name;
  // Whether another value may be given to a run that uses the checkpoint. It counts then; otherwise
  // it is refused.
  bool may_change = false;
};

// Keeps the values of the options in every checkpoint of a training, of an address without who asks
// ("http://***@host/"). Throws InvalidArgument for one of define_secret_flag, since whoever may read a
// checkpoint reads them; NotFound for a name that is not declared.
//
// `facts`: what else the checkpoints are to say, by names that are no option's; use_kept_options returns them
// with the values.
std::shared_ptr<Hook> kept_options_hook(std::vector<KeptOption> options,
                                        std::map<std::string, std::string> facts = {});

// Before the options are read: sets those that nobody has given to what the checkpoint holds that mox::run
// goes on from (TRAIN: the latest of log_dir) or uses (EVAL and PREDICT: checkpoint_path, else log_dir). Both
// are paths of this machine, as log_dir_of_run and checkpoint_path_of_run give them.
// Returns what it holds, as text; nothing where a training begins, of a file of weights, of checkpoints
// without options, and of those that cannot be read, of which mox::run says more. Of a job rank 0 reads, and
// all ranks get the same: all call this. Throws ConfigError for a given value other than the kept one, and
// for an address that asked by name and is not given again; InvalidArgument for a URL; else as
// kept_options_hook does.
std::map<std::string, std::string> use_kept_options(ModeKeys mode, const std::string& log_dir,
                                                    const std::string& checkpoint_path,
                                                    const std::vector<KeptOption>& options);

// What a checkpoint of this machine, or the latest of a log_dir, holds by itself: no option is set, and no
// other rank is asked. Nothing where use_kept_options says nothing. Throws DataError, and InvalidArgument for
// a URL.
std::map<std::string, std::string> kept_options_of(const std::string& run);

}  // namespace mox
