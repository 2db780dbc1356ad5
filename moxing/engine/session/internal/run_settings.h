// A RunSpec after the configuration has had its say: every setting has one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  // remote_*: what the other two are copies of, in an object store; "": of nothing. log_dir
  // is uploaded there.
  struct Places {
    std::string log_dir, checkpoint_path, remote_log_dir, remote_checkpoint_path;
  };
  // What a training without a checkpoint of its own begins with, beside checkpoint_path.
  struct Initial {
    RestoreSelection restore;  // what is taken of it
    std::function<StartingVariables()> variables;
    std::string name;  // of the variables
  };
  struct Limits {
    int64_t max_number_of_steps = 0, max_epochs = 0, eval_steps = 0, predict_steps = 0;  // 0: none
  };
  struct Intervals {
    Interval log, output, summary, save, eval;
    Interval keep;  // of checkpoints that are kept for good
  };
  struct Data {
    int64_t batch_size = 0, eval_batch_size = 0;
    bool auto_batch = true;
    int prefetch_batches = 2;
    int threads = 1;                                     // or PipelineOptions::kAutomatic
    std::shared_ptr<MemoryBudget> memory;                // of all pipelines of the run
    std::shared_ptr<MemoryBudget::Share> stream_memory;  // of it, what streams from a store have
  };
  struct Cores {
    int threads = 1;
    bool threads_are_automatic = false;  // choose_threads takes some of `threads`
    int devices = 1;                     // or kAutomaticDevices
    int threads_per_device = 0;
  };
  struct Distribution {
    int64_t logical_replicas = 0;
    bool allow_inexact = false, sync_batch_norm = false;
    std::string scale_learning_rate = "none";
    UpdateScheme update_scheme = UpdateScheme::kReplicatedHost;
    double first_bucket_mb = 1, bucket_mb = 25;
    bool bfloat16_on_the_wire = false;
    double stall_warning_s = 30, stall_abort_s = 600;
  };
  struct LossScaling {
    NumberOrString scale = 1.0;
    bool drops_overflows = true;
  };
  struct Predictions {
    std::string file;  // "": none
    bool gathers = true;
  };

  ModeKeys run_mode = ModeKeys::TRAIN;
  bool evaluates = false;  // inter_mode EVAL
  Places places;
  Initial initial;
  NamePatterns freeze;
  bool normalises_frozen = false;  // frozen_batch_norm: training
  Limits limits;
  Intervals intervals;
  int64_t keep_checkpoints = 0;
  SelectionSettings selection;
  std::optional<SnapshotHookOptions> snapshots;  // none are written
  std::optional<DimReduceOptions> dim_reduce;    // stage 2 is off
  Predictions predictions;
  uint64_t seed = 0;
  Arithmetic arithmetic;  // conv_algorithm, precision, recompute: what is wanted, until settle_arithmetic
  LossScaling loss_scaling;
  OptimizerFn optimizer_fn;
  Data data;
  Cores cores;
  Distribution distribution;
  bool print_plan = false;
  std::string step_profile;  // "": none is written
};

// Where a checkpoint lies in the store whose copy is at `path`; "" if it is no copy.
std::string stored_place_of(const RunSettings& settings, const std::string& path);

// Throws ConfigError and what resolve throws; InvalidArgument for a spec without what its mode needs.
RunSettings resolve_settings(const RunSpec& spec);

}  // namespace mox::internal
