#include "moxing/engine/session/internal/training/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moxing/engine/session/internal/batches.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/source_location.h"

namespace mox::internal {

TrainingData::TrainingData(const RunSpec& spec, const Start& start) {
  const RunSettings& settings = start.settings;
  Dataset dataset = data_of(spec, ModeKeys::TRAIN);
  const int64_t epoch = dataset.epoch_size();
  count_elements(start, epoch, dataset.cardinality());
  if (settings.limits.max_epochs > 0) find_last_step(start, epoch);
  if (settings.data.auto_batch) samples_ = dataset;
  dataset_ = batches_of(dataset, settings, ModeKeys::TRAIN, settings.data.batch_size);
  open_pipeline(start);
  if (settings.limits.max_number_of_steps > 0)
    last_step_ = last_step_ > 0 ? std::min(last_step_, settings.limits.max_number_of_steps)
                                : settings.limits.max_number_of_steps;
  if (last_step_ == 0 && dataset_->cardinality() == Dataset::kInfinite && !settings.print_plan)
    throw ConfigError(
        "this training would never end: input_fn's data repeats without end; set max_number_of_steps or "
        "max_epochs");
}

void TrainingData::count_elements(const Start& start, int64_t epoch, int64_t cardinality) {
  const RunSettings& settings = start.settings;
  const int64_t replicas = start.placement.logical_replicas;
  if (__builtin_mul_overflow(settings.data.auto_batch ? settings.data.batch_size : 1, replicas,
                             &step_elements_))
    throw InvalidArgument(
        fmt::format("batch_size is {}, for each of {} logical replicas: more samples than can be counted",
                    settings.data.batch_size, replicas));
  if (epoch > 0) {
    steps_per_epoch_ = static_cast<double>(epoch) / step_elements_;
    if (cardinality == epoch)
      steps_per_epoch_ = std::ceil(steps_per_epoch_);  // one pass, whose last batch is smaller
  }
  const TrainingState& restored = start.restored;
  if (restored.elements_taken)
    elements_taken_ = *restored.elements_taken;
  else if (__builtin_mul_overflow(restored.global_step, step_elements_ / replicas * restored.logical_replicas,
                                  &elements_taken_))
    throw DataError(fmt::format("'{}' is of step {}: of more samples than can be counted", start.point.path,
                                restored.global_step));
  epoch_ = epoch;
  elements_at_start_ = elements_taken_;
  first_step_ = restored.global_step;
  int64_t elements = 0;
  are_steps_alike_ =
      !__builtin_mul_overflow(first_step_, step_elements_, &elements) && elements == elements_at_start_;
}

double TrainingData::passes(int64_t step) const {
  if (steps_per_epoch_ <= 0) return 0;
  if (are_steps_alike_) return step / steps_per_epoch_;
  const double since = static_cast<double>(step - first_step_) * step_elements_;
  return (elements_at_start_ + since) / epoch_;
}

int64_t TrainingData::step_of_passes(int64_t passes) const {
  constexpr double kRounding = 1e-9;
  const auto whole = [](double steps) { return static_cast<int64_t>(std::ceil(steps - kRounding)); };
  if (are_steps_alike_) return whole(static_cast<double>(passes) * steps_per_epoch_);
  const double left = static_cast<double>(passes) * epoch_ - elements_at_start_;
  return first_step_ + std::max<int64_t>(0, whole(left / step_elements_));
}

double TrainingData::steps_per_epoch_until(int64_t step) const {
  const double taken = passes(step);
  if (are_steps_alike_ || taken <= 0) return steps_per_epoch_;
  double per_epoch = step / taken;
  while (step / per_epoch < taken) per_epoch = std::nextafter(per_epoch, 0.0);  // a border that is reached
  return per_epoch;
}

void TrainingData::find_last_step(const Start& start, int64_t epoch) {
  const int64_t max_epochs = start.settings.limits.max_epochs;
  if (epoch < 0)
    throw Conflict(
        "max_epochs is set, but the size of an epoch of input_fn's data is not known; use "
        "max_number_of_steps");
  // Passes over the samples, whether batches cross their borders (repeat before batch) or not.
  int64_t elements = 0;
  if (__builtin_mul_overflow(max_epochs, epoch, &elements))
    throw InvalidArgument(
        fmt::format("max_epochs is {}, more passes over {} samples than can be counted", max_epochs, epoch));
  // Steps of before may have taken another number each (allow_inexact).
  const int64_t left = std::max<int64_t>(0, elements - elements_taken_);
  last_step_ = start.restored.global_step + left / step_elements_ + (left % step_elements_ != 0);
}

void TrainingData::open_pipeline(const Start& start) {
  const RunSettings& settings = start.settings;
  const LeafRange replicas = start.placement.replicas();
  const PipelineOptions options{.seed = settings.seed,
                                .threads = settings.data.threads,
                                .prefetch_batches = static_cast<int>(
                                    std::max<int64_t>(settings.data.prefetch_batches, replicas.size())),
                                .memory_budget = settings.data.memory,
                                .group_size = start.placement.logical_replicas,
                                .group_first = replicas.first,
                                .group_count = replicas.size()};
  const std::string& cursor = start.restored.data_cursor;
  try {
    pipeline_ = std::make_unique<Pipeline>(*dataset_, options, cursor, SourceLocation::current());
  } catch (const FailedPrecondition& error) {
    if (cursor.empty()) throw;
    throw Conflict(
        fmt::format("'{}' cannot be continued with what input_fn gives now: {}. Give it the data, the "
                    "operations and the batch_size of before; or train its variables on with these, from "
                    "step 0 in another log_dir, with --checkpoint_path={}",
                    start.point.path, error.what(), start.point.path));
  }
}

void TrainingData::take(size_t wanted, std::vector<Batch>* batches) {
  are_waiting_ = true;
  pipeline_->mark();
  batches->resize(wanted);
  size_t taken = 0;
  while (taken < wanted && pipeline_->next(&(*batches)[taken])) ++taken;
  batches->resize(taken);
}

}  // namespace mox::internal
