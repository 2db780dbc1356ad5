#include "moxing/engine/session/internal/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "moxing/engine/session/internal/batches.h"
#include "moxing/engine/session/internal/shared_findings.h"
#include "moxing/engine/session/internal/training/failing_together.h"
#include "moxing/job/facts.h"
#include "runtime/base/conflict.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/log.h"
#include "runtime/base/seconds.h"
#include "runtime/data/findings.h"
#include "runtime/data/shuffled.h"
#include "runtime/interruption/interruption.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"

namespace mox::internal {

Dataset one_epoch(const RunSpec& spec, const RunSettings& settings, ModeKeys mode, int64_t steps,
                  std::optional<Dataset>* samples) {
  Dataset dataset = data_of(spec, mode);
  if (dataset.cardinality() == Dataset::kInfinite) {
    const int64_t epoch = dataset.epoch_size();
    if (epoch < 0 && steps == 0)
      throw Conflict(
          fmt::format("input_fn({}) returns data without end whose epoch has no known size, so one pass over "
                      "it is not defined: leave out .repeat() in this mode, add .take(n), or set {}_steps",
                      to_string(mode), to_string(mode)));
    if (steps == 0 && mixes_passes(dataset))
      throw Conflict(
          fmt::format("input_fn({0}) shuffles above repeat ({1}), which mixes the passes: of one pass some "
                      "samples would be there twice and others not at all. Shuffle below repeat "
                      "(.shuffle(n).repeat()), leave both out in this mode, or set {0}_steps",
                      to_string(mode), dataset.describe()));
    if (epoch >= 0) dataset = dataset.take(epoch);
  }
  if (settings.data.auto_batch && samples) *samples = dataset;
  dataset = batches_of(dataset, settings, mode, settings.data.eval_batch_size);
  return steps > 0 ? dataset.take(steps) : dataset;
}

Evaluator::Evaluator(const RunSpec& spec, const RunSettings& settings, VariableStore& store, const Team& team,
                     LaneThreads& lanes, std::function<void(ModelBuild&, const ModelSpec&)> begin)
    : dataset_(one_epoch(spec, settings, ModeKeys::EVAL, settings.limits.eval_steps, &samples_)),
      pipeline_options_{.seed = settings.seed,
                        .threads = settings.data.threads,
                        .prefetch_batches = std::max(settings.data.prefetch_batches, lanes.size()),
                        .memory_budget = settings.data.memory,
                        .group_size = job().size(),
                        .group_first = job().rank()},
      compiler_(spec.model_fn, ModeKeys::EVAL, store, team, settings.arithmetic, std::move(begin),
                lanes.size()),
      lanes_(lanes) {
  compiler_.for_signature(dataset_.signature());
  require_agreement(job(), facts_of_data(dataset_));
  // What a cache of these data needs is theirs from now on, before rows of files and images, which may be
  // kept or not, take the memory; and a cache that does not fit ends a run before it trains.
  const Pipeline first(dataset_, pipeline_options_);
}

namespace {

// Calls `work`, in which the ranks do not speak to each other. An error of it, of whichever rank, ends the
// job once `keep` was called on all of them; without `keep` it is thrown.
void keep_before_failing(const std::function<void()>& keep, FunctionRef<void()> work) {
  if (!keep) return work();
  std::exception_ptr error;
  try {
    work();
  } catch (const EvaluationGivenUp&) {
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  if (any_has_failed(job(), error)) fail_together(job(), error, keep);
}

}  // namespace

std::optional<metrics::Direction> Evaluator::direction(std::string_view metric) {
  if (!directions_) directions_.emplace(spec());
  return directions_->of(metric);
}

Evaluation Evaluator::evaluate(const std::function<bool()>& give_up, PassObserver* observer,
                               const std::function<void()>& keep) {
  EvaluationState state(compiler_.for_signature(dataset_.signature()), lanes_.size());
  Evaluation evaluation;
  keep_before_failing(keep, [&] {
    try {
      evaluate_batches(state, give_up, observer);
    } catch (const Interrupted&) {
      throw EvaluationGivenUp();
    }
  });
  share_samples_read(keep);
  state.gather(job());
  keep_before_failing(keep, [&] { evaluation = state.finish(job(), dataset_.describe()); });
  for (const std::string& name : evaluation.without_weight)
    if (without_weight_.insert(name).second && job().rank() == 0)
      log_warning(
          fmt::format("the metric '{}': all {} samples of the evaluation have the weight 0, so there is "
                      "nothing that it could measure",
                      name, evaluation.samples));
  return evaluation;
}

// Of samples that cannot be read those of all ranks count.
void Evaluator::share_samples_read(const std::function<void()>& keep) const {
  if (job().size() == 1) return;
  std::exception_ptr error;
  try {
    share_findings(job(), dataset_, take_findings(dataset_));
  } catch (const DataError&) {
    if (!keep) throw;
    error = std::current_exception();
  }
  if (keep && any_has_failed(job(), error)) fail_together(job(), error, keep);
}

void Evaluator::evaluate_batches(EvaluationState& state, const std::function<bool()>& give_up,
                                 PassObserver* observer) {
  using Clock = std::chrono::steady_clock;
  Pipeline pipeline(dataset_, pipeline_options_);
  const int64_t full_batch = dataset_.signature()[0].shape[0];
  data_seconds_ = compute_seconds_ = 0;
  std::vector<Batch> batches(lanes_.size());
  std::vector<CompiledModel*> models(batches.size());
  int64_t done = 0;  // batches of this rank
  bool goes_on = true;
  for (size_t taken = batches.size(); goes_on && taken == batches.size();) {
    if (give_up && give_up()) throw EvaluationGivenUp();
    const auto before = Clock::now();
    for (taken = 0; taken < batches.size() && pipeline.next(&batches[taken]);) ++taken;
    const auto ready = Clock::now();
    for (size_t i = 0; i < taken; ++i) models[i] = &compiler_.for_batch(batches[i]);
    state.expect(taken);
    if (observer && taken > 0) observer->before_batch();
    lanes_.run([&](int lane) {
      const size_t i = lane;
      if (i >= taken) return;
      models[i]->of_lane(lane).run({.components = batches[i].components});
      const int64_t batch = (done + lane) * job().size() + job().rank();
      state.add(i, lane, *models[i], batches[i].size, batch * full_batch);
    });
    done += taken;
    data_seconds_ += in_seconds(ready - before);
    compute_seconds_ += seconds_since(ready);
    if (observer && taken > 0) goes_on = observer->after_batch(*models[0], batches[0].size);
  }
}

}  // namespace mox::internal
