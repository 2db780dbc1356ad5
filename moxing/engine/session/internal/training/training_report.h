// What a training says of itself: before its first step, and when it has ended.
#pragma once

#include "moxing/engine/session/internal/training/training.h"
#include "moxing/engine/session/internal/training/training_loop.h"
#include "moxing/engine/session/internal/training/training_session.h"

namespace mox::internal {

// Of settings that do nothing in this training.
void mention_idle_settings(const Training& training);

// Placement, optimizer, plan and memory; and whether its bits depend on the number of threads, with a warning
// where it goes on with another one. A warning, too, where the loss and the optimizer both decay a variable.
void describe_training(const Training& training, const CompiledModel& model);

// Throws InvalidArgument if the file of step_profile cannot be written, or would replace another one than a
// profile: better before the training than after it.
void require_place_of_profile(const std::string& path);
// All ranks call it together; rank 0 writes.
void write_step_profile(const Training& training);

// Throughput, times and best values, and how to go on.
void print_summary(const Training& training, const TrainingSession& session, const TrainingLoop& loop);
// What the last evaluation has found, or why there was none.
void print_outcome(const Training& training, const TrainingSession& session);

}  // namespace mox::internal
