// A RunSpec after the configuration has had its say: every setting has one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "moxing/boost/boost_options.h"
#include "moxing/boost/snapshot_hook.h"
#include "moxing/checkpoint/restore_selection.h"
#include "moxing/config/options.h"
#include "moxing/engine/compile/model_arithmetic.h"
#include "moxing/engine/session/run_spec.h"
#include "moxing/engine/step/update_scheme.h"
#include "moxing/hooks/interval.h"
#include "moxing/hooks/selection_settings.h"
#include "runtime/data/memory_budget.h"

namespace mox::internal {

// num_devices: auto, which choose_devices makes a number.
inline constexpr int kAutomaticDevices = 0;

struct RunSettings {
  ModeKeys run_mode = ModeKeys::TRAIN;
  bool evaluates = false;  // inter_mode EVAL
  int64_t batch_size = 0, eval_batch_size = 0;
  bool auto_batch = true;
  std::string log_dir, checkpoint_path;
  // What these two are copies of, in an object store; empty: of nothing. log_dir is uploaded there.
  std::string remote_log_dir, remote_checkpoint_path;
  RestoreSelection restore;  // what is taken of checkpoint_path
  std::function<StartingVariables()> starting_variables;
  std::string starting_variables_name;
  NamePatterns freeze;
  int64_t max_number_of_steps = 0, max_epochs = 0;
  Interval log_interval, output_interval, summary_interval, save_interval, eval_interval;
  Interval keep_interval;  // of checkpoints that are kept for good
  int64_t keep_checkpoints = 0;
  int64_t eval_steps = 0, predict_steps = 0;
  SelectionSettings selection;
  std::string predictions;  // "": no file
  bool gather_predictions = true;
  std::optional<SnapshotHookOptions> snapshots;  // none are written
  std::optional<DimReduceOptions> dim_reduce;    // stage 2 is off
  uint64_t seed = 0;
  int threads = 1, prefetch_batches = 2;
  bool threads_are_automatic = false;                  // choose_threads takes some of `threads`
  int data_threads = 1;                                // or PipelineOptions::kAutomatic
  std::shared_ptr<MemoryBudget> data_memory;           // of all pipelines of the run
  std::shared_ptr<MemoryBudget::Share> stream_memory;  // of it, what streams from a store have
  Arithmetic arithmetic;  // conv_algorithm, precision, recompute: what is wanted, until settle_arithmetic
  NumberOrString loss_scale = 1.0;
  bool drop_overflow_update = true;
  bool normalises_frozen = false;  // frozen_batch_norm: training
  bool print_plan = false;
  OptimizerFn optimizer_fn;
  int devices = 1;  // or kAutomaticDevices
  int threads_per_device = 0;
  int64_t logical_replicas = 0;
  bool allow_inexact = false, sync_batch_norm = false;
  std::string scale_learning_rate = "none";
  UpdateScheme update_scheme = UpdateScheme::kReplicatedHost;
  double first_bucket_mb = 1, bucket_mb = 25;
  bool bfloat16_on_the_wire = false;
  std::string step_profile;  // "": none is written
  double stall_warning_s = 30, stall_abort_s = 600;
};

// Where a checkpoint lies in the store whose copy is at `path`; "" if it is no copy.
std::string stored_place_of(const RunSettings& settings, const std::string& path);

// Throws ConfigError and what resolve throws; InvalidArgument for a spec without what its mode needs.
RunSettings resolve_settings(const RunSpec& spec);

}  // namespace mox::internal
