#include "moxing/engine/session/internal/predictor.h"

#include <fmt/format.h>

#include "moxing/engine/session/internal/evaluator.h"
#include "moxing/engine/session/internal/output_hook.h"
#include "moxing/engine/session/session_state.h"
#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"
#include "runtime/replicas/lane_threads.h"

namespace mox::internal {
namespace {

// Fills `store` from the checkpoint that the settings name and returns its step.
int64_t restore_or_refuse(const RunSettings& settings, VariableStore& store) {
  if (settings.print_plan) return 0;  // a plan needs no values
  const StartingPoint start = find_starting_point(settings);
  if (start.kind == StartingPoint::Kind::kInitial)
    throw FailedPrecondition(
        fmt::format("run_mode {} needs trained variables, but log_dir ('{}') holds no checkpoint and "
                    "checkpoint_path is not set; train "
                    "first, or name a checkpoint with --checkpoint_path",
                    to_string(settings.run_mode), settings.log_dir));
  store.restore(start.checkpoint.variables);
  store.require_restored(start.path);
  log_info(fmt::format("variables from '{}' (global step {})", start.path, start.checkpoint.global_step));
  return start.checkpoint.global_step;
}

}  // namespace

RunResult run_evaluation(const RunSpec& spec, const RunSettings& settings, const Team& team,
                         Console& console) {
  VariableStore store(settings.seed);
  const int64_t step = restore_or_refuse(settings, store);
  LaneThreads lane(1, team);
  Evaluator evaluator(spec, settings, store, team, lane);
  if (settings.print_plan) {
    console.print(evaluator.compiler().for_signature(evaluator.dataset().signature()).plan->describe());
    return {.global_step = step, .stop_reason = "print_plan"};
  }
  const Evaluation evaluation = evaluator.evaluate();
  const double seconds = evaluator.data_seconds() + evaluator.compute_seconds();
  log_info(fmt::format("evaluated {} samples in {} ({:.1f} sample/sec)", evaluation.samples,
                       format_duration(seconds),
                       static_cast<double>(evaluation.samples) / std::max(seconds, 1e-9)));
  console.print(format_test_lines(evaluation), Console::Style::kStrong);
  return {.global_step = step,
          .stop_reason = "the data of input_fn ended",
          .interrupted = false,
          .evaluation = evaluation.numbers};
}

RunResult run_prediction(const RunSpec& spec, const RunSettings& settings, const Team& team,
                         Console& console) {
  VariableStore store(settings.seed);
  const int64_t step = restore_or_refuse(settings, store);
  const Dataset dataset = one_epoch(spec, settings, ModeKeys::PREDICT, 0);
  ModelCompiler compiler(spec.model_fn, ModeKeys::PREDICT, store, team, settings.arithmetic);
  if (settings.print_plan) {
    console.print(compiler.for_signature(dataset.signature()).plan->describe());
    return {.global_step = step, .stop_reason = "print_plan"};
  }
  Pipeline pipeline(dataset, {.seed = settings.seed,
                              .threads = settings.data_threads,
                              .prefetch_batches = settings.prefetch_batches,
                              .memory_budget_bytes = settings.data_memory_bytes,
                              .group_size = job().size(),
                              .group_first = job().rank()});
  require_agreement(job(), facts_of_data(dataset));
  Batch batch;
  std::vector<OutputBatch> pending;
  int64_t steps = 0;
  const int64_t every = std::max<int64_t>(settings.output_every_n_steps, 1);
  while (pipeline.next(&batch)) {
    CompiledModel& model = compiler.for_batch(batch);
    model.instance->run({.components = batch.components});
    pending.push_back(copy_outputs(model));
    if (++steps % every == 0) {
      spec.output_fn(pending);
      pending.clear();
    }
  }
  if (!pending.empty()) spec.output_fn(pending);
  return {.global_step = step, .stop_reason = "the data of input_fn ended"};
}

}  // namespace mox::internal
