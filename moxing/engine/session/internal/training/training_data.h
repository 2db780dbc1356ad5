// The data of a training: the pipeline, from where the run goes on, and how far they reach.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moxing/engine/session/internal/start.h"
#include "runtime/data/pipeline.h"

namespace mox::internal {

class TrainingData {
 public:
  // Calls input_fn. Throws FailedPrecondition if max_epochs is set and an epoch has no known size, or if the
  // run that is continued had other data; ConfigError if the training would never end; InvalidArgument for
  // numbers that cannot be counted; and what Pipeline throws.
  TrainingData(const RunSpec& spec, const Start& start);

  const Dataset& dataset() const { return *dataset_; }
  // What input_fn gave, if it gave samples and not batches.
  const std::optional<Dataset>& samples() const { return samples_; }
  // Samples of a batch that is not short.
  int64_t full_batch() const { return dataset_->signature()[0].shape[0]; }
  double steps_per_epoch() const { return steps_per_epoch_; }  // of this start's; 0: not known
  // Passes over the data that the steps up to the global step `step`, of this start, have taken; those of
  // earlier starts may have taken another number of samples each (allow_inexact). 0: not known.
  double passes(int64_t step) const;
  // The step with which so many passes end, those of earlier starts counted as they were; of data whose
  // epoch has a known size.
  int64_t step_of_passes(int64_t passes) const;
  // Whether the steps of earlier starts took as many samples each as those of this one.
  bool are_steps_alike() const { return are_steps_alike_; }
  // What makes `step` so many passes: what a schedule in epochs is given for it.
  double steps_per_epoch_until(int64_t step) const;
  int64_t last_step() const { return last_step_; }  // the run's; 0: without a limit

  // The next batches of this process's replicas, at most `wanted`; at the end of the data fewer, or none.
  // Throws what the pipeline throws. `cursor` stays before the first of them until a step begins with them.
  void take(size_t wanted, std::vector<Batch>* batches);
  void begin_step() { are_waiting_ = false; }
  // A step has been done.
  void count_step() { elements_taken_ += step_elements_; }
  // Of input_fn's data: those that all steps have taken.
  int64_t elements_taken() const { return elements_taken_; }
  std::string cursor() const { return are_waiting_ ? pipeline_->marked_cursor() : pipeline_->cursor(); }

 private:
  void count_elements(const Start& start, int64_t epoch, int64_t cardinality);
  void find_last_step(const Start& start, int64_t epoch);
  void open_pipeline(const Start& start);

  std::optional<Dataset> dataset_, samples_;
  std::unique_ptr<Pipeline> pipeline_;
  bool are_waiting_ = false;                        // batches, for their step
  int64_t step_elements_ = 0, elements_taken_ = 0;  // step_elements_: those that a step takes
  int64_t epoch_ = 0, elements_at_start_ = 0;       // elements of a pass; and those taken by step first_step_
  double steps_per_epoch_ = 0;
  int64_t first_step_ = 0, last_step_ = 0;
  bool are_steps_alike_ = true;  // those of earlier starts took as many elements each
};

}  // namespace mox::internal
