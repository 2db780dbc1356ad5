#include "moxing/config/internal/old_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/nearest_name.h"

namespace mox::internal {
namespace {

struct OldName {
  std::string_view theirs, ours, what_differs;  // without `ours` there is none, and the rest says why
};

constexpr std::string_view kLaunch =
    "processes are started by 'mox launch -n 4 -- PROGRAM' or mpirun, and know each other "
    "(docs/distributed.md)";
constexpr std::string_view kSynchronous = "all processes update together, always";
constexpr std::string_view kCpu = "all computing is the CPU's";
constexpr std::string_view kContinues = "a run goes on from the checkpoint in its log_dir by itself";
constexpr std::string_view kSchedule = "a number or a schedule";
constexpr std::string_view kNone = {};

constexpr OldName kOldNames[] = {
    // MoXing, and TensorFlow's jobs of parameter servers
    {"num_gpus", "num_devices", "sets of cores, each with batch_size samples"},
    {"job_name", kNone, kLaunch},
    {"task_index", kNone, kLaunch},
    {"task_id", kNone, kLaunch},
    {"ps_hosts", kNone, kLaunch},
    {"worker_hosts", kNone, kLaunch},
    {"cluster_spec", kNone, kLaunch},
    {"num_workers_per_node", kNone, kLaunch},
    {"sync_replicas", kNone, kSynchronous},
    {"replicas_to_aggregate", kNone, kSynchronous},
    {"use_fp16", "precision", "bf16 is the short format here"},
    {"fp16", "precision", "bf16 is the short format here"},
    {"amp", "precision", "bf16 is the short format here"},
    {"mixed_precision", "precision", "bf16 is the short format here"},
    {"loss_scaling", "loss_scale", kNone},
    {"train_dir", "train_url", kNone},
    {"data_dir", "data_url", kNone},
    {"dataset_dir", "data_url", kNone},
    {"num_batches", "max_number_of_steps", kNone},
    {"num_readers", "data_threads", kNone},
    {"num_preprocessing_threads", "data_threads", kNone},
    {"num_intra_threads", "threads", kNone},
    {"num_inter_threads", "threads", kNone},
    {"intra_op_parallelism_threads", "threads", kNone},
    {"inter_op_parallelism_threads", "threads", kNone},
    {"gradient_clip", "clip_gradient_norm", kNone},
    {"data_format", kNone, "images are NCHW, and each op takes the layout that is fastest for it"},
    // TensorFlow's slim
    {"num_clones", "num_devices", "sets of cores, each with batch_size samples"},
    {"clone_on_cpu", kNone, kCpu},
    {"master", kNone, kLaunch},
    {"worker_replicas", kNone, kLaunch},
    {"num_ps_tasks", kNone, kLaunch},
    {"save_interval_secs", "save_model_secs", kNone},
    {"save_summaries_secs", "save_summary_secs", kNone},
    {"checkpoint_exclude_scopes", "checkpoint_exclude_patterns", "regular expressions"},
    {"trainable_scopes", "freeze", "regular expressions for what is not trained"},
    {"ignore_missing_vars", kNone, "what checkpoint_path lacks begins with its initial values, and is named"},
    {"learning_rate_decay_type", "optimizer.learning_rate", kSchedule},
    // tf.estimator
    {"model_dir", "log_dir", kNone},
    {"save_checkpoints_secs", "save_model_secs", kNone},
    {"save_checkpoints_steps", "save_model_steps", kNone},
    {"keep_checkpoint_max", "keep_checkpoints", kNone},
    {"log_step_count_steps", "log_every_n_steps", kNone},
    {"tf_random_seed", "seed", kNone},
    {"random_seed", "seed", kNone},
    {"keep_checkpoint_every_n_hours", "keep_checkpoint_every_n_secs", "in seconds"},
    {"throttle_secs", "eval_every_n_secs", "evaluations do not wait for a checkpoint"},
    {"max_steps", "max_number_of_steps", kNone},
    {"train_steps", "max_number_of_steps", kNone},
    {"num_steps", "max_number_of_steps", "of the whole job, not of each process"},
    {"warm_start_from", "checkpoint_path", kNone},
    {"init_checkpoint", "checkpoint_path", kNone},
    {"pretrained_checkpoint", "checkpoint_path", kNone},
    // PyTorch and Horovod
    {"epochs", "max_epochs", kNone},
    {"num_epochs", "max_epochs", kNone},
    {"lr", "optimizer.learning_rate", kNone},
    {"base_lr", "optimizer.learning_rate", kSchedule},
    {"lr_schedule", "optimizer.learning_rate", kSchedule},
    {"sched", "optimizer.learning_rate", kSchedule},
    {"warmup_steps", "optimizer.learning_rate", kSchedule},
    {"warmup_epochs", "optimizer.learning_rate", kSchedule},
    {"optimizer", "optimizer.name", kNone},
    {"opt", "optimizer.name", kNone},
    {"wd", "optimizer.weight_decay", kNone},
    {"clip_grad", "clip_gradient_norm", kNone},
    {"clip_grad_norm", "clip_gradient_norm", kNone},
    {"max_grad_norm", "clip_gradient_norm", kNone},
    {"num_workers", "data_threads", "threads that read data; processes are those of mox launch"},
    {"num_parallel_workers", "data_threads", kNone},
    {"workers", "data_threads", "threads that read data; processes are those of mox launch"},
    {"dataset_path", "data_url", kNone},
    {"config_path", "config", kNone},
    {"checkpoint_file_path", "checkpoint_path", kNone},
    {"ckpt_path", "checkpoint_path", kNone},
    {"save_checkpoint_steps", "save_model_steps", kNone},
    {"save_checkpoint_epochs", "save_model_epochs", kNone},
    {"dataset_sink_mode", kNone, "data is where the steps are"},
    {"num_threads", "threads", kNone},
    {"output_dir", "log_dir", kNone},
    {"save_dir", "log_dir", kNone},
    {"local_rank", kNone, kLaunch},
    {"rank", kNone, kLaunch},
    {"world_size", kNone, kLaunch},
    {"nproc_per_node", kNone, kLaunch},
    {"master_addr", kNone, kLaunch},
    {"master_port", kNone, kLaunch},
    {"dist_backend", kNone, kLaunch},
    {"dist_url", kNone, kLaunch},
    {"rank_size", kNone, kLaunch},
    {"device_num", kNone, kLaunch},
    {"run_distribute", kNone, kLaunch},
    {"multiprocessing_distributed", kNone, kLaunch},
    {"rank_table_file", kNone, kLaunch},
    {"fp16_allreduce", "wire_dtype", "bfloat16"},
    {"print_freq", "log_every_n_steps", kNone},
    {"log_interval", "log_every_n_steps", kNone},
    {"eval_interval", "eval_every_n_steps", kNone},
    {"evaluate", "run_mode", "eval"},
    {"start_epoch", kNone, kContinues},
    {"resume", kNone, kContinues},
    {"auto_resume", kNone, kContinues},
    {"device", kNone, kCpu},
    {"device_target", kNone, kCpu},
    {"device_id", kNone, kCpu},
    {"gpu", kNone, kCpu},
    {"gpus", kNone, kCpu},
    {"cuda", kNone, kCpu},
    {"no_cuda", kNone, kCpu},
    {"use_gpu", kNone, kCpu},
};

struct OldValue {
  // A value of one option, or of all whose names end so ("*.mode") and that have the value `ours`.
  std::string_view option, theirs, ours, what_differs;  // as in OldName
};

constexpr std::string_view kShortFormat = "the short format here";
constexpr std::string_view kSumsTogether =
    "gradients are summed over all processes in each of the forms, which differ in where the variables are";

// Small letters; underscores for dashes.
constexpr OldValue kOldValues[] = {
    {"run_mode", "evaluate", "eval", kNone},
    {"run_mode", "evaluation", "eval", kNone},
    {"run_mode", "test", "eval", kNone},
    {"run_mode", "validate", "eval", kNone},
    {"run_mode", "val", "eval", kNone},
    {"run_mode", "fit", "train", kNone},
    {"run_mode", "training", "train", kNone},
    {"run_mode", "infer", "predict", kNone},
    {"run_mode", "inference", "predict", kNone},
    {"run_mode", "train_and_evaluate", "train", "with inter_mode: eval"},
    {"run_mode", "train_and_eval", "train", "with inter_mode: eval"},
    {"run_mode", "export", kNone,
     "programs read checkpoints (docs/predict.md), and 'mox export-torch' writes one for PyTorch"},
    {"inter_mode", "evaluate", "eval", kNone},
    {"inter_mode", "evaluation", "eval", kNone},
    {"inter_mode", "false", "none", kNone},
    {"inter_mode", "true", "eval", kNone},
    {"precision", "fp16", "bf16", kShortFormat},
    {"precision", "float16", "bf16", kShortFormat},
    {"precision", "half", "bf16", kShortFormat},
    {"precision", "16", "bf16", kShortFormat},
    {"precision", "amp", "bf16", kShortFormat},
    {"precision", "mixed", "bf16", kShortFormat},
    {"precision", "mixed_float16", "bf16", kShortFormat},
    {"precision", "mixed_bfloat16", "bf16", kNone},
    {"precision", "bfloat16", "bf16", kNone},
    {"precision", "float32", "fp32", kNone},
    {"precision", "float", "fp32", kNone},
    {"precision", "32", "fp32", kNone},
    {"precision", "fp64", kNone, "no format here is longer than fp32"},
    {"precision", "float64", kNone, "no format here is longer than fp32"},
    {"precision", "double", kNone, "no format here is longer than fp32"},
    {"loss_scale", "auto", "dynamic", kNone},
    {"loss_scale", "static", "1024", "the fixed number itself"},
    {"loss_scale", "fixed", "1024", "the fixed number itself"},
    {"threads", "all", "0", kNone},
    {"num_devices", "all", "auto", kNone},
    {"variable_update", "distributed_replicated", "replicated", kSumsTogether},
    {"variable_update", "distributed_all_reduce", "replicated", kSumsTogether},
    {"variable_update", "collective_all_reduce", "replicated", kSumsTogether},
    {"variable_update", "horovod", "replicated", kSumsTogether},
    {"variable_update", "ps", "parameter_server", kNone},
    {"variable_update", "independent", kNone, "all replicas train one model"},
    {"wire_dtype", "fp16", "bfloat16", kShortFormat},
    {"wire_dtype", "float16", "bfloat16", kShortFormat},
    {"wire_dtype", "bf16", "bfloat16", kNone},
    {"wire_dtype", "fp32", "float32", kNone},
    {"dim_reduce.basis_dtype", "fp16", "bfloat16", kShortFormat},
    {"dim_reduce.basis_dtype", "float16", "bfloat16", kShortFormat},
    {"dim_reduce.basis_dtype", "bf16", "bfloat16", kNone},
    {"dim_reduce.basis_dtype", "fp32", "float32", kNone},
    {"boost.mode", "auto", "manual", "with boost.dim_reduce: true or false"},
    {"scale_learning_rate", "true", "linear", kNone},
    {"scale_learning_rate", "false", "none", kNone},
    {"log_level", "warn", "warning", kNone},
    {"log_level", "verbose", "debug", kNone},
    {"log_level", "trace", "debug", kNone},
    {"log_level", "fatal", "error", kNone},
    {"log_level", "critical", "error", kNone},
    {"on_shape_mismatch", "ignore", "initialise", kNone},
    {"on_shape_mismatch", "skip", "initialise", kNone},
    {"on_shape_mismatch", "initialize", "initialise", kNone},
    {"on_shape_mismatch", "error", "refuse", kNone},
    {"recompute", "true", "auto", kNone},
    {"recompute", "false", "none", kNone},
    {"recompute", "normalization", "normalisation", kNone},
    {"frozen_batch_norm", "eval", "inference", kNone},
    {"frozen_batch_norm", "train", "training", kNone},
    {"*.mode", "maximize", "max", kNone},
    {"*.mode", "maximise", "max", kNone},
    {"*.mode", "higher", "max", kNone},
    {"*.mode", "minimize", "min", kNone},
    {"*.mode", "minimise", "min", kNone},
    {"*.mode", "lower", "min", kNone},
    {"optimizer.name", "gd", "sgd", kNone},
    {"optimizer.name", "gradient_descent", "sgd", kNone},
    {"optimizer.name", "sgd_momentum", "momentum", kNone},
    {"optimizer.name", "nesterov", "momentum", "with optimizer.nesterov: true"},
    {"optimizer.name", "adam_w", "adamw", kNone},
    {"optimizer.name", "adam_weight_decay", "adamw", kNone},
};

std::string in_small_letters(std::string_view text) {
  std::string result = lower_case(text);
  std::ranges::replace(result, '-', '_');
  return result;
}

std::string named_here(std::string_view name, std::string_view what_differs) {
  return fmt::format("here it is '{}'{}{}", name, what_differs.empty() ? "" : ": ", what_differs);
}

}  // namespace

std::string old_value_text(std::string_view option, std::string_view value,
                           const std::vector<std::string>& allowed) {
  const std::string plain = in_small_letters(value);
  if (std::ranges::find(allowed, plain) != allowed.end()) return named_here(plain, kNone);
  for (const OldValue& old : kOldValues) {
    const bool is_of_option =
        old.option.starts_with('*')
            ? option.ends_with(old.option.substr(1)) && std::ranges::find(allowed, old.ours) != allowed.end()
            : option == old.option;
    if (!is_of_option || old.theirs != plain) continue;
    if (old.ours.empty()) return fmt::format("there is none such: {}", old.what_differs);
    return named_here(old.ours, old.what_differs);
  }
  const std::string nearest = nearest_name(plain, allowed);
  return nearest.empty() ? "" : fmt::format("the nearest is '{}'", nearest);
}

std::string old_name_text(std::string_view kind, std::string_view prefix, std::string_view name) {
  std::string plain(name.substr(name.rfind('.') + 1));  // all of it, if there is no dot
  std::replace(plain.begin(), plain.end(), '-', '_');
  for (const OldName& old : kOldNames) {
    if (old.theirs != plain) continue;
    if (old.ours.empty()) return fmt::format("no {} is needed for it: {}", kind, old.what_differs);
    return named_here(fmt::format("{}{}", prefix, old.ours), old.what_differs);
  }
  return "";
}

}  // namespace mox::internal
