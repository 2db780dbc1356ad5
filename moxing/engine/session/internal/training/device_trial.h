// num_devices: auto and threads: auto. Measures on how many devices, or with how many threads, a process
// computes most samples a second.
#pragma once

#include <vector>

#include "moxing/engine/session/internal/run_settings.h"
#include "moxing/engine/session/run_spec.h"
#include "moxing/engine/session/starting_point.h"
#include "moxing/engine/session/training_state.h"
#include "runtime/comm/communicator.h"

namespace mox::internal {

// The numbers of devices that give each device as many cores, and over which the replicas of the run (those
// of the settings, or of the checkpoint that it continues) can be spread; in ascending order. Empty if there
// is none.
std::vector<int> possible_devices(const RunSettings& settings, const StartingPoint& start,
                                  const TrainingState& restored, int ranks);

// The number of devices of a training with num_devices auto. All ranks call it together and get the same:
// possible is what is so on each of them, whose cores may be more or fewer. A run that is continued keeps the
// number that it began with, where that is still possible. Otherwise each possible number computes the
// forward and backward pass of some batches of zeros, on all ranks at the same time, and all ranks take the
// one that was fastest over all of them, which is logged. This calls input_fn and model_fn, with variables
// that are thrown away. Throws what they throw, and FailedPrecondition if no number of devices is possible.
int choose_devices(const RunSpec& spec, const RunSettings& settings, const StartingPoint& start,
                   const TrainingState& restored, Communicator& ranks);

// The number of threads of a training with threads: auto, in the same way: of all that the settings have,
// half of them, a quarter ... and one those over which devices and replicas can be spread. Each is measured
// by the median pass, since on cores that others use, too, the fastest one is luck.
int choose_threads(const RunSpec& spec, const RunSettings& settings, const StartingPoint& start,
                   const TrainingState& restored, Communicator& ranks);

}  // namespace mox::internal
