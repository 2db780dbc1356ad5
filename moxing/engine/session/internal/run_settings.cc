#include "moxing/engine/session/internal/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "moxing/boost/boost_settings.h"
#include "moxing/config/flags.h"
#include "moxing/config/options.h"
#include "moxing/config/remote_places.h"
#include "moxing/file/file.h"
#include "moxing/file/jobs/local_places.h"
#include "moxing/file/streams/streamed_file.h"
#include "moxing/formats/npy.h"
#include "moxing/job/data_memory.h"
#include "moxing/optimizers/optimizer_options.h"
#include "moxing/prediction/predictions_file.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/resource_limits.h"
#include "runtime/data/pipeline.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

std::optional<std::string> name_of(const std::optional<ModeKeys>& mode) {
  if (!mode) return std::nullopt;
  return std::string(to_string(*mode));
}

// log_dir, else train_url (the same thing under MoXing's name).
std::string resolve_log_dir(const std::optional<std::string>& from_code) {
  std::string directory = resolve<std::string>("log_dir", from_code);
  return directory.empty() ? resolve<std::string>("train_url", std::nullopt) : directory;
}

// What lies in an object store is worked on in a place of this machine. Rank 0 alone reads and writes there.
void settle_places(RunSettings& settings) {
  const bool reads = job().rank() == 0;
  if (!settings.places.log_dir.empty()) {
    const std::string places = local_places();
    const std::string local = reads ? file::local_run(settings.places.log_dir, places)
                                    : file::place_of_run(settings.places.log_dir, places);
    if (file::is_remote(settings.places.log_dir)) settings.places.remote_log_dir = settings.places.log_dir;
    settings.places.log_dir = local;
  }
  if (!settings.places.checkpoint_path.empty() && reads) {
    if (file::is_remote(settings.places.checkpoint_path))
      settings.places.remote_checkpoint_path = settings.places.checkpoint_path;
    settings.places.checkpoint_path = file::local_checkpoint(settings.places.checkpoint_path, local_places());
  }
}

// `automatic` for auto.
int whole_number(const char* option, const NumberOrString& value, int automatic) {
  const double* number = std::get_if<double>(&value);
  if (!number) return automatic;
  if (*number != std::floor(*number))
    throw InvalidArgument(fmt::format("{} must be a whole number or auto, got {}", option, *number));
  return static_cast<int>(*number);
}

Interval interval_of(int64_t steps, int64_t seconds, int64_t epochs) {
  return {.steps = steps, .seconds = static_cast<double>(seconds), .epochs = epochs};
}

void resolve_intervals(const RunSpec& spec, RunSettings* settings) {
  // An interval in another unit takes the place of the framework's default in steps, and one that somebody
  // has given that of a program's, too. The option says so then, so that the run's file gives the same run.
  const auto with_default_steps = [](const char* option, std::optional<int64_t> steps_from_code,
                                     const char* seconds_option, std::optional<int64_t> seconds_from_code,
                                     const char* epochs_option, std::optional<int64_t> epochs_from_code) {
    const auto steps = resolve<int64_t>(option, steps_from_code);
    const auto seconds = resolve<int64_t>(seconds_option, seconds_from_code),
               epochs = resolve<int64_t>(epochs_option, epochs_from_code);
    const bool is_frameworks = option_origin(option) == "default";
    const auto replaces = [&](const char* other, int64_t value) {
      return value > 0 && (is_frameworks || is_given(other));
    };
    const bool is_replaced =
        !is_given(option) && (replaces(seconds_option, seconds) || replaces(epochs_option, epochs));
    return interval_of(is_replaced ? resolve<int64_t>(option, 0) : steps, seconds, epochs);
  };
  settings->intervals.log =
      with_default_steps("log_every_n_steps", spec.log_every_n_steps, "log_every_n_secs",
                         spec.log_every_n_secs, "log_every_n_epochs", spec.log_every_n_epochs);
  settings->intervals.output =
      with_default_steps("output_every_n_steps", spec.output_every_n_steps, "output_every_n_secs",
                         spec.output_every_n_secs, "output_every_n_epochs", spec.output_every_n_epochs);
  settings->intervals.summary =
      with_default_steps("save_summary_steps", spec.save_summary_steps, "save_summary_secs",
                         spec.save_summary_secs, "save_summary_epochs", spec.save_summary_epochs);
  settings->intervals.save = interval_of(resolve<int64_t>("save_model_steps", spec.save_model_steps),
                                         resolve<int64_t>("save_model_secs", spec.save_model_secs),
                                         resolve<int64_t>("save_model_epochs", spec.save_model_epochs));
  settings->intervals.eval = interval_of(resolve<int64_t>("eval_every_n_steps", spec.eval_every_n_steps),
                                         resolve<int64_t>("eval_every_n_secs", spec.eval_every_n_secs),
                                         resolve<int64_t>("eval_every_n_epochs", spec.eval_every_n_epochs));
}

RestoreSelection resolve_restore(const RunSpec& spec) {
  using Texts = std::vector<std::string>;
  const auto patterns = [](const char* option, const std::optional<Texts>& from_code) {
    return NamePatterns(option, resolve<Texts>(option, from_code));
  };
  std::optional<Texts> pairs;
  if (spec.checkpoint_rename) pairs = replacement_texts(*spec.checkpoint_rename);
  return {.rename = {"checkpoint_rename",
                     parse_replacements("checkpoint_rename", resolve<Texts>("checkpoint_rename", pairs))},
          .include = patterns("checkpoint_include_patterns", spec.checkpoint_include_patterns),
          .exclude = patterns("checkpoint_exclude_patterns", spec.checkpoint_exclude_patterns),
          .initialises_other_shapes =
              resolve<std::string>("on_shape_mismatch", spec.on_shape_mismatch) == "initialise"};
}

// Those of OMP_NUM_THREADS, which schedulers set for their jobs, else one for each core. Of a list (one
// number a level of nesting) the first counts.
int default_threads() {
  const int cores = available_cores();
  const char* const given = std::getenv("OMP_NUM_THREADS");
  if (given == nullptr || *given == '\0') return cores;
  constexpr std::string_view kBlanks = " \t\r\n";  // which OpenMP allows around the number
  std::string_view text(given);
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const char* const end = text.data() + text.size();
  int threads = 0;
  auto [rest, error] = std::from_chars(text.data(), end, threads);
  while (rest != end && kBlanks.find(*rest) != std::string_view::npos) ++rest;
  if (error != std::errc() || (rest != end && *rest != ',') || threads < 1 || threads > 4096)
    throw InvalidArgument(
        fmt::format("OMP_NUM_THREADS is '{}', which is no number of threads from 1 to 4096; "
                    "set one, unset it, or give threads",
                    given));
  if (threads != cores)
    log_info(
        fmt::format("threads: {}, as OMP_NUM_THREADS says; the process may use {} cores", threads, cores));
  return threads;
}

void resolve_data(const RunSpec& spec, RunSettings* settings) {
  settings->data.batch_size = resolve<int64_t>("batch_size", spec.batch_size);
  settings->data.eval_batch_size = resolve<int64_t>("eval_batch_size", spec.eval_batch_size);
  if (settings->data.eval_batch_size == 0) settings->data.eval_batch_size = settings->data.batch_size;
  settings->data.auto_batch = resolve<bool>("auto_batch", spec.auto_batch);
  settings->data.prefetch_batches = static_cast<int>(resolve<int64_t>("prefetch_batches", std::nullopt));
  settings->data.threads = static_cast<int>(resolve<int64_t>("data_threads", std::nullopt));
  if (settings->data.threads == 0) settings->data.threads = PipelineOptions::kAutomatic;
  settings->data.memory = data_memory_of_process();
  data::set_npy_memory(settings->data.memory);
  // What is read in a store where it is lies in memory for a while: of the same budget.
  if (file::is_remote(resolve<std::string>("data_url", std::nullopt))) {
    const size_t of_streams = settings->data.memory->bytes() / 4;
    settings->data.stream_memory =
        std::make_shared<MemoryBudget::Share>(settings->data.memory, MemoryBudget::Share::Of::kBatches);
    settings->data.stream_memory->resize(of_streams);
    file::set_stream_memory(of_streams);
  }
}

// Where the run begins, and what it keeps.
void resolve_checkpoints(const RunSpec& spec, RunSettings* settings) {
  settings->places.log_dir = resolve_log_dir(spec.log_dir);
  settings->places.checkpoint_path = resolve<std::string>("checkpoint_path", spec.checkpoint_path);
  settle_places(*settings);
  settings->initial.restore = resolve_restore(spec);
  settings->initial.variables = spec.starting_variables;
  settings->initial.name = spec.starting_variables_name;
  settings->keep_checkpoints = resolve<int64_t>("keep_checkpoints", std::nullopt);
  settings->intervals.keep = interval_of(resolve<int64_t>("keep_checkpoint_every_n_steps", std::nullopt),
                                         resolve<int64_t>("keep_checkpoint_every_n_secs", std::nullopt),
                                         resolve<int64_t>("keep_checkpoint_every_n_epochs", std::nullopt));
  settings->selection = resolve_selection(
      {.keep_best = spec.keep_best, .early_stopping = spec.early_stopping, .plateau = spec.plateau});
  settings->snapshots = resolve_snapshots(spec.snapshots);
}

// What is computed, with which numbers.
void resolve_arithmetic(const RunSpec& spec, RunSettings* settings) {
  settings->freeze = {"freeze", resolve<std::vector<std::string>>("freeze", spec.freeze)};
  settings->normalises_frozen = resolve<std::string>("frozen_batch_norm", std::nullopt) == "training";
  settings->dim_reduce = resolve_dim_reduce(spec.boost_level, spec.boost, spec.dim_reduce);
  settings->seed = static_cast<uint64_t>(resolve<int64_t>("seed", spec.seed));
  settings->arithmetic =
      arithmetic_of({.precision = resolve<std::string>("precision", std::nullopt),
                     .conv_algorithm = resolve<std::string>("conv_algorithm", std::nullopt),
                     .conv_error = resolve<double>("conv_error", std::nullopt),
                     .recompute = resolve<std::string>("recompute", std::nullopt)},
                    "run");
  if (const RuleOptions& rules = settings->arithmetic.rules;
      rules.direct_convolutions && rules.convolution_error < kStatedConvolutionError &&
      is_given("conv_error") && option_origin("conv_error") != "code")
    throw ConfigError(
        fmt::format("conv_error is {}, but conv_algorithm is direct, which takes Winograd's method for no "
                    "convolution, whatever its error. Set conv_algorithm to auto, or leave out conv_error",
                    rules.convolution_error));
  settings->loss_scaling.scale = resolve<NumberOrString>("loss_scale", std::nullopt);
  settings->loss_scaling.drops_overflows = resolve<bool>("drop_overflow_update", std::nullopt);
  if (!settings->loss_scaling.drops_overflows &&
      std::holds_alternative<std::string>(settings->loss_scaling.scale))
    throw ConfigError(
        "drop_overflow_update is false, but loss_scale is dynamic: the scale follows the steps whose "
        "gradients overflow, which are left out. Give loss_scale a number, or leave drop_overflow_update "
        "at true");
}

// Which cores of this process compute.
void resolve_cores(RunSettings* settings) {
  const NumberOrString threads = resolve<NumberOrString>("threads", std::nullopt);
  settings->cores.threads_are_automatic =
      std::holds_alternative<std::string>(threads) && settings->run_mode == ModeKeys::TRAIN;
  settings->cores.threads = whole_number("threads", threads, 0);
  settings->arithmetic.team_follows_work =
      settings->cores.threads == 0 && !settings->cores.threads_are_automatic;
  if (settings->cores.threads == 0) settings->cores.threads = default_threads();
  settings->cores.devices =
      whole_number("num_devices", resolve<NumberOrString>("num_devices", std::nullopt), kAutomaticDevices);
  if (settings->cores.threads_are_automatic && settings->cores.devices == kAutomaticDevices)
    throw InvalidArgument(
        "threads and num_devices are both auto: give one of them, and the other one is measured");
  settings->cores.threads_per_device = static_cast<int>(resolve<int64_t>("threads_per_device", std::nullopt));
}

// How replicas and ranks make one step.
void resolve_distribution(RunSettings* settings) {
  settings->distribution.logical_replicas = resolve<int64_t>("logical_replicas", std::nullopt);
  settings->distribution.allow_inexact = resolve<bool>("allow_inexact", std::nullopt);
  settings->distribution.sync_batch_norm = resolve<bool>("sync_batch_norm", std::nullopt);
  settings->distribution.scale_learning_rate = resolve<std::string>("scale_learning_rate", std::nullopt);
  settings->distribution.first_bucket_mb = resolve<double>("first_bucket_mb", std::nullopt);
  settings->distribution.bucket_mb = resolve<double>("bucket_mb", std::nullopt);
  settings->distribution.update_scheme =
      update_scheme_from_string(resolve<std::string>("variable_update", std::nullopt));
  settings->distribution.bfloat16_on_the_wire =
      resolve<std::string>("wire_dtype", std::nullopt) == "bfloat16";
  settings->distribution.stall_warning_s = resolve<double>("stall_warning_s", std::nullopt);
  settings->distribution.stall_abort_s = resolve<double>("stall_abort_s", std::nullopt);
}

void resolve_predictions(const RunSpec& spec, RunSettings* settings) {
  settings->limits.predict_steps = resolve<int64_t>("predict_steps", spec.predict_steps);
  settings->predictions.file = resolve<std::string>("predictions", spec.predictions);
  settings->predictions.gathers = resolve<bool>("gather_predictions", std::nullopt);
  if (settings->run_mode == ModeKeys::PREDICT && !spec.output_fn && settings->predictions.file.empty())
    throw InvalidArgument(
        "run: there is no output_fn and predictions is not set, so nothing would receive what the model "
        "computes; name a file with --predictions=FILE.csv, .jsonl or .npz");
  if (settings->run_mode == ModeKeys::PREDICT && !settings->predictions.file.empty())
    require_other_than_input(settings->predictions.file, flag("data_url"), "that data_url names");
  // A YAML serves all modes.
  if (settings->run_mode != ModeKeys::PREDICT && !settings->predictions.file.empty() &&
      option_origin("predictions") == "command line")
    log_warning(fmt::format("predictions is '{}', but nothing is written there: run_mode is {}, not predict",
                            settings->predictions.file, to_string(settings->run_mode)));
  if (!settings->predictions.file.empty() && !settings->predictions.gathers)
    throw InvalidArgument(
        "predictions names one file, for which rank 0 gathers those of all ranks: gather_predictions cannot "
        "be false with it");
}

}  // namespace

std::string stored_place_of(const RunSettings& settings, const std::string& path) {
  const std::pair<std::string, std::string> copies[] = {
      {settings.places.checkpoint_path, settings.places.remote_checkpoint_path},
      {settings.places.log_dir, settings.places.remote_log_dir}};
  for (auto [local, remote] : copies) {
    if (remote.empty() || !path.starts_with(local)) continue;
    while (remote.ends_with('/')) remote.pop_back();
    const std::string below = path.substr(local.size());
    if (below.empty() || below.starts_with('/')) return remote + below;
  }
  return "";
}

RunSettings resolve_settings(const RunSpec& spec) {
  if (!spec.input_fn) throw InvalidArgument("run: input_fn is missing; it says where the data comes from");
  if (!spec.model_fn) throw InvalidArgument("run: model_fn is missing; it returns the ModelSpec");
  store_spec_options(spec.options);

  RunSettings settings;
  settings.run_mode = mode_from_string(resolve<std::string>("run_mode", name_of(spec.run_mode)));
  if (spec.inter_mode && *spec.inter_mode != ModeKeys::EVAL)
    throw InvalidArgument(
        fmt::format("run: inter_mode can be EVAL (or not set), got {}", to_string(*spec.inter_mode)));
  settings.evaluates = resolve<std::string>("inter_mode", name_of(spec.inter_mode)) == "eval";
  settings.limits.max_number_of_steps = resolve<int64_t>("max_number_of_steps", spec.max_number_of_steps);
  settings.limits.max_epochs = resolve<int64_t>("max_epochs", spec.max_epochs);
  settings.limits.eval_steps = resolve<int64_t>("eval_steps", spec.eval_steps);
  settings.print_plan = resolve<bool>("print_plan", std::nullopt);
  settings.step_profile = resolve<std::string>("step_profile", std::nullopt);
  resolve_checkpoints(spec, &settings);
  resolve_intervals(spec, &settings);
  resolve_arithmetic(spec, &settings);
  resolve_cores(&settings);
  resolve_data(spec, &settings);
  resolve_distribution(&settings);
  if (settings.run_mode == ModeKeys::TRAIN) settings.optimizer_fn = configured_optimizer(spec.optimizer_fn);
  resolve_predictions(spec, &settings);
  return settings;
}

}  // namespace mox::internal
