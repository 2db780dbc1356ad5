#include "moxing/internal/evaluator.h"

#include <fmt/format.h>

#include <chrono>

#include "runtime/base/error.h"

namespace mox::internal {

Dataset one_epoch(const RunSpec& spec, const RunSettings& settings, ModeKeys mode) {
  Dataset dataset = spec.input_fn(mode);
  if (dataset.cardinality() == Dataset::kInfinite) {
    const int64_t epoch = dataset.epoch_size();
    if (epoch < 0)
      throw FailedPrecondition(fmt::format(
          "input_fn({}) returns data without end whose epoch has no known size, so one pass over it is not defined: leave "
          "out .repeat() in this mode, or add .take(n)",
          to_string(mode)));
    dataset = dataset.take(epoch);
  }
  return settings.auto_batch ? dataset.batch(settings.eval_batch_size) : dataset;
}

std::string format_test_lines(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format("test {}: {:.4f}\n", name, value);
  return text;
}

Evaluator::Evaluator(const RunSpec& spec, const RunSettings& settings, VariableStore& store, const Team& team)
    : dataset_(one_epoch(spec, settings, ModeKeys::EVAL)),
      pipeline_options_{.seed = settings.seed,
                        .threads = settings.data_threads,
                        .prefetch_batches = settings.prefetch_batches},
      compiler_(spec.model_fn, ModeKeys::EVAL, store, team, settings.arithmetic) {
  compiler_.for_signature(dataset_.signature());
}

Metrics Evaluator::evaluate() {
  using Clock = std::chrono::steady_clock;
  Pipeline pipeline(dataset_, pipeline_options_);
  Metrics sums;
  samples_ = 0;
  data_seconds_ = compute_seconds_ = 0;
  Batch batch;
  for (auto before = Clock::now(); pipeline.next(&batch);) {
    const auto ready = Clock::now();
    CompiledModel& model = compiler_.for_batch(batch);
    model.instance->run({.components = batch.components});
    for (size_t i = 0; i < model.spec.log_info.size(); ++i) {
      const std::string& name = model.spec.log_info[i].first;
      if (sums.size() <= i) sums.emplace_back(name, 0.0);
      sums[i].second += model.fetched(name).item() * static_cast<double>(batch.size);
    }
    samples_ += batch.size;
    data_seconds_ += std::chrono::duration<double>(ready - before).count();
    before = Clock::now();
    compute_seconds_ += std::chrono::duration<double>(before - ready).count();
  }
  if (samples_ == 0) throw DataError(fmt::format("the data of input_fn(eval) has no samples ({})", dataset_.describe()));
  for (auto& [name, sum] : sums) sum /= static_cast<double>(samples_);
  return sums;
}

}  // namespace mox::internal
