#include "moxing/config/internal/old_names.h"

#include <fmt/format.h>

#include <algorithm>

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
    // tf.estimator
    {"model_dir", "log_dir", kNone},
    {"save_checkpoints_secs", "save_model_secs", kNone},
    {"save_checkpoints_steps", "save_model_steps", kNone},
    {"keep_checkpoint_max", "keep_checkpoints", kNone},
    {"log_step_count_steps", "log_every_n_steps", kNone},
    {"tf_random_seed", "seed", kNone},
    {"random_seed", "seed", kNone},
    {"throttle_secs", "eval_every_n_steps", "evaluations are counted in steps"},
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
    {"base_lr", "optimizer.learning_rate", "a number or a schedule"},
    {"lr_schedule", "optimizer.learning_rate", "a number or a schedule"},
    {"wd", "optimizer.weight_decay", kNone},
    {"clip_grad", "clip_gradient_norm", kNone},
    {"clip_grad_norm", "clip_gradient_norm", kNone},
    {"max_grad_norm", "clip_gradient_norm", kNone},
    {"num_workers", "data_threads", "threads that read data; processes are those of mox launch"},
    {"num_parallel_workers", "data_threads", kNone},
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
    {"rank_table_file", kNone, kLaunch},
    {"fp16_allreduce", "wire_dtype", "bfloat16"},
    {"print_freq", "log_every_n_steps", kNone},
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

}  // namespace

std::string old_name_text(std::string_view kind, std::string_view prefix, std::string_view name) {
  std::string plain(name.substr(name.rfind('.') + 1));  // all of it, if there is no dot
  std::replace(plain.begin(), plain.end(), '-', '_');
  for (const OldName& old : kOldNames) {
    if (old.theirs != plain) continue;
    if (old.ours.empty()) return fmt::format("no {} is needed for it: {}", kind, old.what_differs);
    return fmt::format("here it is '{}{}'{}{}", prefix, old.ours, old.what_differs.empty() ? "" : ": ",
                       old.what_differs);
  }
  return "";
}

}  // namespace mox::internal
