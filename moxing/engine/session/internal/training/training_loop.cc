#include "moxing/engine/session/internal/training/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "moxing/engine/session/internal/shared_findings.h"
#include "moxing/engine/session/internal/training/failing_together.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/seconds.h"
#include "runtime/data/findings.h"
#include "runtime/interruption/interruption.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

TrainingLoop::TrainingLoop(Training& training, TrainingSession& session)
    : training_(training),
      session_(session),
      zero_loss_(session.first_spec()),
      label_mistakes_(*training.compiler->for_signature(training.data->dataset().signature()).graph) {
  const ValueDirections directions(session.first_spec());
  for (const std::string& name : session.log_names()) log_directions_.push_back(directions.of(name));
}

void TrainingLoop::run() {
  const auto start = Clock::now();
  session_.run(training_.start.restored.hook_states, training_.start.point.path, [this] { steps(); });
  seconds_.total = seconds_since(start);
}

void TrainingLoop::steps() {
  agree();  // all evaluate, or none
  session_.make_up_for_evaluation();
  take_batches();
  agree();
  while (!session_.stop_requested()) {
    set_job_step(session_.global_step() + 1);
    training_.stage_two->begin_if_due(session_.global_step(), training_.start.settings, training_.engine(),
                                      *training_.step);
    const auto before = Clock::now();
    const bool any = training_.step->begin(batches_);
    seconds_.data += seconds_since(before);
    if (!any) return end_of_data();
    step();
    note_step_done();
    take_batches();
    agree();
  }
}

// The batches of this process's replicas; at the end of the data fewer, or none. They are taken before the
// ranks agree, so that one that cannot read its share is known to all while each still has a finished step.
void TrainingLoop::take_batches() {
  if (session_.stop_requested()) return;
  const auto before = Clock::now();
  set_job_step(session_.global_step() + 1);
  try {
    const Interruptible waiting(session_.wish_to_stop());
    training_.data->take(training_.start.placement.replicas().size(), &batches_);
  } catch (const Interrupted&) {
    batches_.clear();  // the run ends before they were needed, and is continued where they begin
  } catch (...) {
    unreadable_ = std::current_exception();
  }
  seconds_.data += seconds_since(before);
}

void TrainingLoop::step() {
  ReplicatedStep& step = *training_.step;
  session_.begin_step();
  training_.data->begin_step();  // a hook may have failed before it, and what is saved then is without it
  label_mistakes_.note(batches_, session_.steps_per_epoch());
  const auto before = Clock::now();
  step.run({.seed = training_.start.settings.seed,
            .step = session_.global_step(),
            .steps_per_epoch = training_.data->steps_per_epoch_until(session_.global_step()),
            .learning_rate_multiplier = session_.learning_rate_factor()});
  session_.count_step(step.samples());
  training_.data->count_step();
  if (step.was_left_out()) mention_left_out_step();
  if (const boost::StageTwo* stage = training_.stage_two->stage(); stage && stage->wants_to_stop())
    session_.request_stop(
        fmt::format("the line search of step {} failed (dim_reduce.on_failed_search: stop); the step changed "
                    "no trained variable",
                    session_.global_step()));
  seconds_.compute += seconds_since(before);

  const std::vector<std::string>& names = session_.log_names();
  for (size_t i = 0; i < names.size(); ++i)
    best_batches_.add(names[i], step.number(names[i]), log_directions_[i], session_.global_step());
  zero_loss_.note(step, session_.steps_per_epoch());
  session_.end_step(step);
}

void TrainingLoop::end_of_data() {
  training_.data->begin_step();  // no batch waits for it
  const int64_t step = session_.global_step(), last_step = session_.last_step();
  if (step == 0)
    throw DataError(
        fmt::format("the data of input_fn(train) has no samples ({})", training_.data->dataset().describe()));
  session_.request_stop("the data of input_fn ended");
  if (last_step > 0)
    log_warning(fmt::format("the data of input_fn ended at step {}, before step {}; add .repeat() to go on",
                            step, last_step));
}

// A signal, or a hook, may have asked one rank alone, and one may have data that cannot be read; all must end
// after the same step, or before the first one.
void TrainingLoop::agree() {
  bool interrupted = session_.received_signal() != 0;
  if (interrupted) session_.request_stop(fmt::format("{} was received", session_.signal_name()));
  session_.set_interrupted(interrupted);
  const auto keep = [this] { session_.save_before_failing("the data of the next step cannot be read"); };
  if (training_.ranks.size() == 1) {
    if (unreadable_) fail_together(training_.ranks, unreadable_, keep);
    return;
  }
  const std::string found = take_findings(training_.data->dataset());
  const char wish = unreadable_ ? '3' : interrupted ? '2' : session_.stop_requested() ? '1' : '0';
  const auto said = training_.ranks.allgather_equal(std::string{wish, found.empty() ? '0' : '1'});
  const auto any = [&](size_t place, char wanted) {
    return std::ranges::any_of(said, [&](const std::string& rank) { return rank[place] == wanted; });
  };
  if (any(0, '3')) fail_together(training_.ranks, unreadable_, keep);
  if (any(1, '1')) share(found);
  for (size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank][0] != '0') session_.request_stop(fmt::format("rank {} was asked to stop", rank));
    interrupted |= said[rank][0] == '2';
  }
  session_.set_interrupted(interrupted);
}

// Samples that cannot be read are counted over the ranks.
void TrainingLoop::share(const std::string& found) {
  std::exception_ptr error;
  try {
    share_findings(training_.ranks, training_.data->dataset(), found);
  } catch (const DataError&) {
    error = std::current_exception();
  }
  if (any_has_failed(training_.ranks, error))
    fail_together(training_.ranks, error,
                  [this] { session_.save_before_failing("too many samples cannot be read"); });
}

void TrainingLoop::mention_left_out_step() const {
  if (training_.ranks.rank() != 0) return;
  const LossScale& scale = training_.scheme->updater().loss_scale();
  log_warning(
      fmt::format("the gradients of global step {} are not finite: the step is left out ({} so far); the "
                  "loss scale is {} now",
                  session_.global_step(), scale.skipped_steps(), scale.scale()));
}

}  // namespace mox::internal
