// A training that is killed again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/programs/training.h"

namespace mox {

struct Killings {
  int kills = 0;
  int before_the_first_checkpoint = 0;  // nothing was saved yet: while the program started or compiled
  int while_saving = 0;                 // a checkpoint was left half written
  int completions = 0;                  // trainings that were finished, each equal to the uninterrupted one
};

// Runs `command(log_dir)` and kills it with SIGKILL at random moments, restarting it each time, until it has
// been killed `kills` times; then lets it finish. Of four kills one comes early, while the program starts and
// compiles, one waits for a checkpoint that is being saved, and two come at any moment of the program's life.
// Each training that comes to its end must equal `reference` (an uninterrupted run's log_dir) in every byte
// of the last checkpoint, in its metrics file and in the lines of its last evaluation; after it the next
// kills hit a new one.
Killings kill_and_restart(const std::function<Words(const std::string& log_dir)>& command,
                          const std::string& reference, const ProcessResult& uninterrupted, int kills,
                          uint64_t seed);

}  // namespace mox
