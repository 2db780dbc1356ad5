// The hook that writes snapshots (snapshots.h) while a run trains. `mox::run` adds it when the options
// snapshots.* ask for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "moxing/hooks/hook.h"

namespace mox {

struct SnapshotHookOptions {
  // One of the three is more than 0: after every n passes over the training data, or every n steps, by global
  // step, or with the first step that ends n seconds or more after the last snapshot (or the run's begin).
  int64_t every_n_epochs = 0, every_n_steps = 0, every_n_secs = 0;
  int64_t from_epoch = 0;      // none before so many passes are done; of a data set of known size
  int64_t keep = 0;            // the newest; 0: all
  std::string directory = "";  // "": <log_dir>/snapshots
  int64_t until_step = 0;      // none after this global step; 0: no end
};

// Rank 0 writes them, on the training thread, before a checkpoint of the same step. Snapshots of this run
// that are of later steps than the one that it goes on from are deleted at its beginning: it makes them
// again. Those of another run, or of other variables than this one trains, are refused (FailedPrecondition):
// a basis over both would be of neither.
//
// Throws InvalidArgument for options as above that contradict each other, FailedPrecondition at the beginning
// of a run without a log_dir and a directory, or if epochs are asked for and their size is not known; IoError
// if the system refuses to write.
std::shared_ptr<Hook> snapshot_hook(const SnapshotHookOptions& options);

// How many snapshots a run has on disk after `steps` steps. By seconds that is not known before: -1.
int64_t count_snapshots(const SnapshotHookOptions& options, int64_t steps, double steps_per_epoch);

}  // namespace mox
