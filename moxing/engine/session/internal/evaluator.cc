#include "moxing/engine/session/internal/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "moxing/job/facts.h"
#include "runtime/base/error.h"
#include "runtime/job/agreement.h"
#include "runtime/job/job.h"

namespace mox::internal {

Dataset one_epoch(const RunSpec& spec, const RunSettings& settings, ModeKeys mode) {
  Dataset dataset = spec.input_fn(mode);
  if (dataset.cardinality() == Dataset::kInfinite) {
    const int64_t epoch = dataset.epoch_size();
    if (epoch < 0)
      throw FailedPrecondition(
          fmt::format("input_fn({}) returns data without end whose epoch has no known size, so one pass over "
                      "it is not defined: leave "
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

Evaluator::Evaluator(const RunSpec& spec, const RunSettings& settings, VariableStore& store, const Team& team,
                     LaneThreads& lanes)
    : dataset_(one_epoch(spec, settings, ModeKeys::EVAL)),
      pipeline_options_{.seed = settings.seed,
                        .threads = settings.data_threads,
                        .prefetch_batches = std::max(settings.prefetch_batches, lanes.size()),
                        .memory_budget_bytes = settings.data_memory_bytes,
                        .group_size = job().size(),
                        .group_first = job().rank()},
      compiler_(spec.model_fn, ModeKeys::EVAL, store, team, settings.arithmetic, {}, lanes.size()),
      lanes_(lanes) {
  compiler_.for_signature(dataset_.signature());
  require_agreement(job(), facts_of_data(dataset_));
}

Metrics Evaluator::evaluate(const std::function<bool()>& give_up) {
  using Clock = std::chrono::steady_clock;
  Pipeline pipeline(dataset_, pipeline_options_);
  const std::vector<std::string> names = metric_names();
  std::vector<double> records;  // of each batch of this rank: its samples and the values of its metrics
  const size_t record = names.size() + 1;
  data_seconds_ = compute_seconds_ = 0;
  std::vector<Batch> batches(static_cast<size_t>(lanes_.size()));
  std::vector<CompiledModel*> models(batches.size());
  for (size_t taken = batches.size(); taken == batches.size();) {
    if (give_up && give_up()) throw EvaluationGivenUp();
    const auto before = Clock::now();
    for (taken = 0; taken < batches.size() && pipeline.next(&batches[taken]);) ++taken;
    const auto ready = Clock::now();
    for (size_t i = 0; i < taken; ++i) models[i] = &compiler_.for_batch(batches[i]);
    const size_t first = records.size();
    records.resize(first + taken * record);
    lanes_.run([&](int lane) {
      const auto i = static_cast<size_t>(lane);
      if (i >= taken) return;
      PlanInstance& instance = models[i]->of_lane(lane);
      instance.run({.components = batches[i].components});
      double* values = records.data() + first + i * record;
      *values++ = static_cast<double>(batches[i].size);
      for (const std::string& name : names) *values++ = instance.fetched(models[i]->fetch_index(name)).item();
    });
    data_seconds_ += std::chrono::duration<double>(ready - before).count();
    compute_seconds_ += std::chrono::duration<double>(Clock::now() - ready).count();
  }
  return means_of(records, names);
}

std::vector<std::string> Evaluator::metric_names() {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : compiler_.for_signature(dataset_.signature()).spec.log_info)
    names.push_back(name);
  return names;
}

Metrics Evaluator::means_of(const std::vector<double>& records, const std::vector<std::string>& names) {
  const size_t record = names.size() + 1;
  const auto bytes = std::as_bytes(std::span(records));
  const auto all = job().allgather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Metrics sums;
  for (const std::string& name : names) sums.emplace_back(name, 0.0);
  samples_ = 0;
  // Rank r has computed the batches r, r + ranks, ...
  size_t batches = 0;
  for (const std::string& of_rank : all) batches += of_rank.size() / (record * sizeof(double));
  for (size_t batch = 0; batch < batches; ++batch) {
    const std::string& of_rank = all[batch % all.size()];
    const size_t position = batch / all.size() * record * sizeof(double);
    if (position >= of_rank.size())
      throw DataError(fmt::format(
          "rank {} (host {}) has come to the end of the data of input_fn(eval) before other ranks ({} "
          "batches in all, without its number {}); all ranks need the same data, in the same order",
          batch % all.size(), job().host(static_cast<int>(batch % all.size())), batches, batch));
    std::vector<double> values(record);
    std::memcpy(values.data(), of_rank.data() + position, record * sizeof(double));
    samples_ += static_cast<int64_t>(values[0]);
    for (size_t i = 0; i < sums.size(); ++i) sums[i].second += values[i + 1] * values[0];
  }
  if (samples_ == 0)
    throw DataError(fmt::format("the data of input_fn(eval) has no samples ({})", dataset_.describe()));
  for (auto& [name, sum] : sums) sum /= static_cast<double>(samples_);
  return sums;
}

}  // namespace mox::internal
