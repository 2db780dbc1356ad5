// The best evaluated state of a run, kept beside its checkpoints (keep_best_hook):
//
//   <log_dir>/best/checkpoint-<step>    the variables; nothing can be continued from it
//
// Its state tells by what it is the best, under the key "best".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "moxing/checkpoint/checkpoint.h"

namespace mox {

struct BestMark {
  std::string metric;
  bool larger_is_better = false;
  double value = 0;
  // Whether the run's answer is this state and not its last one: then evaluation, prediction and export take
  // it where a log_dir is named.
  bool restore = false;
};

std::string best_directory(const std::string& log_dir);

// The value of the state's key "best", and back; nothing if the checkpoint has none. Throws DataError for a
// damaged one, naming `path`, where it was read from.
std::string to_json(const BestMark& mark);
std::optional<BestMark> best_mark_of(const Checkpoint& checkpoint, const std::string& path = "checkpoint");

// Loads what `path` means to those who use a trained model: a checkpoint itself; of a log_dir the best state,
// if its run wanted that restored, else the latest checkpoint. Sets `*directory` and throws as
// load_checkpoint does.
Checkpoint load_trained(const std::string& path, std::string* directory = nullptr);

// Deletes all checkpoints of a best_directory but that of `step`. Throws IoError, for a link too.
void delete_checkpoints_but(const std::string& directory, int64_t step);

}  // namespace mox
