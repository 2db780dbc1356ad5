// Where a run starts from, and how it is found.
#pragma once

#include <string>
#include <vector>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/session/internal/run_settings.h"

namespace mox::internal {

struct StartingPoint {
  enum class Kind { kInitial, kContinued, kWarmStart };
  Kind kind = Kind::kInitial;
  std::string path;  // the checkpoint
  Checkpoint checkpoint;
  std::vector<std::string> left_out;  // of a warm start, on rank 0: those that were not wanted
};

// In a training a checkpoint in log_dir wins (kContinued: step, data position and optimizer go on), else
// checkpoint_path (kWarmStart: only the variables are taken, of those what settings.initial.restore selects),
// else kInitial; a line says where both are there. In every other mode checkpoint_path wins. Rank 0 of the
// job looks and reads, the others get what it found. Throws what load_checkpoint throws.
StartingPoint find_starting_point(const RunSettings& settings);

}  // namespace mox::internal
