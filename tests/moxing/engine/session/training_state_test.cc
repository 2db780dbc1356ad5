// How the members of a run's state stand in a checkpoint.
#include "moxing/engine/session/training_state.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace mox {
namespace {

using internal::from_checkpoint_state;
using internal::TrainingState;

TrainingState full_state() {
  return {.global_step = 7,
          .optimizer = {"adam", {"mean", "variance"}},
          .seed = 18446744073709551615ULL,
          .threads = 3,
          .logical_replicas = 4,
          .devices = 2,
          .process_threads = 6,
          .processor = "a \"processor\"",
          .instruction_set = InstructionSet::kAvx512,
          .arithmetic = "precision bf16, conv_algorithm auto",
          .learning_rate_multiplier = 0.1,
          .loss_scale = {.scale = 1024, .steps_in_a_row = 5, .skipped_steps = 2, .skipped_in_a_row = 1},
          .missed_updates = {{"a \"variable\"", 5}, {"w", 1}},
          .data_cursor = "{\"position\":[0,3]}",
          .elements_taken = 99,
          .evaluation_data = "contents 0123 of 'a table'",
          .evaluation_due = 7,
          .hook_states = {{"a", "{}"}, {"b", "[1]"}},
          .stage_two = "{\"first_step\":3}"};
}

Checkpoint checkpoint_of(const TrainingState& state) {
  Checkpoint checkpoint;
  checkpoint.global_step = state.global_step;
  checkpoint.state = to_checkpoint_state(state);
  return checkpoint;
}

TEST(TrainingState, ComesBackWhole) {
  const TrainingState state = full_state();
  const Checkpoint checkpoint = checkpoint_of(state);
  EXPECT_EQ(checkpoint.state.size(), 18U);
  const TrainingState back = from_checkpoint_state(checkpoint, "x");
  EXPECT_EQ(back.global_step, 7);
  EXPECT_EQ(back.loss_scale, state.loss_scale);
  EXPECT_EQ(to_checkpoint_state(back), checkpoint.state);
}

TEST(TrainingState, WhatHasNoValueIsNotWritten) {
  const auto state = checkpoint_of(TrainingState()).state;
  for (const char* key : {"instruction_set", "missed_updates", "elements_taken", "evaluation_data",
                          "evaluation_due", "stage_two"})
    EXPECT_FALSE(state.contains(key)) << key;
  EXPECT_EQ(state.at("hooks"), "{}");
}

TEST(TrainingState, OlderCheckpointsLackWhatCameLater) {
  for (const auto& [key, text] : checkpoint_of(full_state()).state) {
    Checkpoint checkpoint = checkpoint_of(full_state());
    checkpoint.state.erase(key);
    const bool is_of_the_first = key == "optimizer" || key == "seed" || key == "threads" ||
                                 key == "learning_rate_multiplier" || key == "data_cursor" || key == "hooks";
    if (is_of_the_first)
      EXPECT_THROW(from_checkpoint_state(checkpoint, "x"), DataError) << key;
    else
      EXPECT_NO_THROW(from_checkpoint_state(checkpoint, "x")) << key;
  }
  Checkpoint old = checkpoint_of(full_state());
  for (const char* key :
       {"logical_replicas", "devices", "process_threads", "missed_updates", "elements_taken"})
    old.state.erase(key);
  const TrainingState back = from_checkpoint_state(old, "x");
  EXPECT_EQ(back.logical_replicas, 1);
  EXPECT_EQ(back.devices, 0);
  EXPECT_EQ(back.process_threads, 0);
  EXPECT_TRUE(back.missed_updates.empty());
  EXPECT_FALSE(back.elements_taken);
}

TEST(TrainingState, WhatNoRunHasWrittenIsRefused) {
  const std::pair<const char*, const char*> texts[] = {{"threads", "\"two\""},
                                                       {"threads", "4294967297"},
                                                       {"threads", "-1"},
                                                       {"devices", "0.5"},
                                                       {"logical_replicas", "0"},
                                                       {"logical_replicas", "1e30"},
                                                       {"elements_taken", "-1"},
                                                       {"elements_taken", "9223372036854775807"},
                                                       {"learning_rate_multiplier", "-1"},
                                                       {"instruction_set", "\"sse2\""},
                                                       {"loss_scale", "{\"scale\":0.5}"},
                                                       {"missed_updates", "{\"w\":6}"},
                                                       {"missed_updates", "{\"w\":-1}"},
                                                       {"missed_updates", "{\"w\":0.5}"},
                                                       {"missed_updates", "[1]"},
                                                       {"hooks", "[]"},
                                                       {"seed", "-1"},
                                                       {"seed", "1,"}};
  for (const auto& [key, text] : texts) {
    Checkpoint checkpoint = checkpoint_of(full_state());
    checkpoint.state[key] = text;
    EXPECT_THROW(from_checkpoint_state(checkpoint, "x"), DataError) << key << " " << text;
  }
}

}  // namespace
}  // namespace mox
