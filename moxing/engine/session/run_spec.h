// What mox::run is given, and what it has to tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "moxing/boost/boost_options.h"
#include "moxing/boost/snapshot_hook.h"
#include "moxing/checkpoint/named_array.h"
#include "moxing/config/options.h"
#include "moxing/hooks/hook.h"
#include "moxing/hooks/hooks.h"
#include "moxing/model/model_spec.h"
#include "moxing/optimizers/optimizer.h"
#include "moxing/prediction/output_batch.h"

namespace mox {

// Values that a training starts from, under the names of the model's variables.
struct StartingVariables {
  std::string origin = {};  // where they come from, for messages
  std::vector<NamedArray> variables = {};
};

// What to run. Each optional field is an option of the same name (docs/configuration.md): what is set here
// wins over the option's default, the YAML file wins over it, and the command line over both.
struct RunSpec {
  InputFn input_fn = {};
  ModelFn model_fn = {};
  OptimizerFn optimizer_fn = {};  // TRAIN; without one the options optimizer.* decide
  // PREDICT: gets the values of output_info in the order of the data, of several ranks on rank 0 (see
  // gather_predictions). TRAIN: gets those of the steps; it is not called for a model without output_info.
  OutputFn output_fn = {};
  // TRAIN: what a run starts from whose log_dir holds no checkpoint and that has no checkpoint_path. Called
  // on rank 0 alone. Variables that it does not give begin with their initial values.
  std::function<StartingVariables()> starting_variables = {};
  // How a person has asked for them ("the option 'model.pretrained'"), for the line that says that a run goes
  // on or starts without them.
  std::string starting_variables_name = {};
  std::optional<ModeKeys> run_mode = {};
  std::optional<ModeKeys> inter_mode = {};  // EVAL: evaluate during and after training
  std::optional<int64_t> batch_size = {};
  std::optional<int64_t> eval_batch_size = {};
  std::optional<bool> auto_batch = {};
  std::optional<std::string> log_dir = {};
  std::optional<std::string> checkpoint_path = {};
  // What a training takes of checkpoint_path (docs/checkpoints.md): regular expressions over names, pairs of
  // one and its replacement; "refuse" or "initialise".
  std::optional<std::vector<std::string>> checkpoint_include_patterns = {}, checkpoint_exclude_patterns = {};
  std::optional<std::vector<std::pair<std::string, std::string>>> checkpoint_rename = {};
  std::optional<std::string> on_shape_mismatch = {};
  std::optional<std::vector<std::string>> freeze = {};  // regular expressions: variables that are not trained
  std::optional<int64_t> max_number_of_steps = {};
  std::optional<int64_t> max_epochs = {};
  // Intervals are in steps, seconds or passes over the training data.
  std::optional<int64_t> log_every_n_steps = {};
  std::optional<int64_t> log_every_n_secs = {}, log_every_n_epochs = {};
  std::optional<int64_t> output_every_n_steps = {};
  std::optional<int64_t> output_every_n_secs = {}, output_every_n_epochs = {};
  std::optional<int64_t> save_summary_steps = {};
  std::optional<int64_t> save_summary_secs = {}, save_summary_epochs = {};
  std::optional<int64_t> save_model_secs = {};
  std::optional<int64_t> save_model_steps = {};
  std::optional<int64_t> save_model_epochs = {};
  std::optional<int64_t> eval_every_n_steps = {};
  std::optional<int64_t> eval_every_n_secs = {}, eval_every_n_epochs = {};
  std::optional<int64_t> eval_steps = {};
  std::optional<int64_t> predict_steps = {};
  std::optional<std::string> predictions = {};  // the file that PREDICT writes: .csv, .jsonl or .npz
  std::optional<int64_t> seed = {};
  // Defaults of any other options, by name: {{"precision", "bf16"}, {"threads", 4}}. They count as the fields
  // do; one that has a field that is set, too, is refused (InvalidArgument), and so is an unknown name
  // (NotFound), a value of another type (InvalidArgument) or out of range (ConfigError).
  std::vector<std::pair<std::string, OptionValue>> options = {};
  std::optional<KeepBestOptions> keep_best = {};      // the options keep_best.*
  std::optional<MonitorOptions> early_stopping = {};  // the options early_stopping.*
  std::optional<PlateauOptions> plateau = {};         // the options plateau.*
  std::optional<SnapshotHookOptions> snapshots = {};  // the options snapshots.*
  std::optional<std::string> boost_level = {};
  std::optional<BoostOptions> boost = {};           // the options boost.*
  std::optional<DimReduceOptions> dim_reduce = {};  // the options dim_reduce.*
  std::vector<std::shared_ptr<Hook>> hooks = {};    // see hook.h
};

// Of a run that has ended without an error.
struct RunResult {
  int64_t global_step = 0;
  std::string stop_reason = {};  // why a training ended
  bool interrupted = false;  // a signal has stopped the training, or asked for it while the training ended
  Metrics evaluation = {};   // of the last evaluation, if there was one
};

}  // namespace mox
