#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moxing/engine/session/internal/trainer.h"
#include "runtime/base/error.h"

namespace mox::internal {

void Trainer::open_data() {
  Dataset dataset = spec_.input_fn(ModeKeys::TRAIN);
  const int64_t epoch = dataset.epoch_size();
  if (__builtin_mul_overflow(settings_.auto_batch ? settings_.batch_size : 1, placement_.logical_replicas,
                             &step_elements_))
    throw InvalidArgument(
        fmt::format("batch_size is {}, for each of {} logical replicas: more samples than can be counted",
                    settings_.batch_size, placement_.logical_replicas));
  if (epoch > 0) {
    steps_per_epoch_ = static_cast<double>(epoch) / static_cast<double>(step_elements_);
    if (dataset.cardinality() == epoch)
      steps_per_epoch_ = std::ceil(steps_per_epoch_);  // one pass, whose last batch is smaller
  }
  if (restored_.elements_taken)
    elements_taken_ = *restored_.elements_taken;
  else if (__builtin_mul_overflow(restored_.global_step,
                                  step_elements_ / placement_.logical_replicas * restored_.logical_replicas,
                                  &elements_taken_))
    throw DataError(fmt::format("'{}' is of step {}: of more samples than can be counted", start_.path,
                                restored_.global_step));
  if (settings_.max_epochs > 0) {
    if (epoch < 0)
      throw FailedPrecondition(
          "max_epochs is set, but the size of an epoch of input_fn's data is not known; use "
          "max_number_of_steps");
    // Passes over the samples, whether batches cross their borders (repeat before batch) or not.
    int64_t elements = 0;
    if (__builtin_mul_overflow(settings_.max_epochs, epoch, &elements))
      throw InvalidArgument(fmt::format("max_epochs is {}, more passes over {} samples than can be counted",
                                        settings_.max_epochs, epoch));
    // Steps of before may have taken another number each (allow_inexact).
    const int64_t left = std::max<int64_t>(0, elements - elements_taken_);
    last_step_ = restored_.global_step + left / step_elements_ + (left % step_elements_ != 0);
  }
  dataset_ = settings_.auto_batch ? dataset.batch(settings_.batch_size) : dataset;
  const LeafRange replicas = placement_.replicas();
  const PipelineOptions options{
      .seed = settings_.seed,
      .threads = settings_.data_threads,
      .prefetch_batches = static_cast<int>(std::max<int64_t>(settings_.prefetch_batches, replicas.size())),
      .memory_budget_bytes = settings_.data_memory_bytes,
      .group_size = placement_.logical_replicas,
      .group_first = replicas.first,
      .group_count = replicas.size()};
  try {
    pipeline_ = std::make_unique<Pipeline>(*dataset_, options, restored_.data_cursor);
  } catch (const FailedPrecondition& error) {
    if (restored_.data_cursor.empty()) throw;
    throw FailedPrecondition(
        fmt::format("'{}' cannot be continued with what input_fn gives now: {}. Give it the data, the "
                    "operations and the batch_size of "
                    "before; or train its variables on with these, from step 0 in another log_dir, with "
                    "--checkpoint_path={}",
                    start_.path, error.what(), start_.path));
  }
}

void Trainer::find_last_step() {
  if (settings_.max_number_of_steps > 0)
    last_step_ =
        last_step_ > 0 ? std::min(last_step_, settings_.max_number_of_steps) : settings_.max_number_of_steps;
  if (last_step_ == 0 && dataset_->cardinality() == Dataset::kInfinite && !settings_.print_plan)
    throw FailedPrecondition(
        "this training would never end: input_fn's data repeats without end; set max_number_of_steps or "
        "max_epochs");
}

}  // namespace mox::internal
