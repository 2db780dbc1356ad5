#include "moxing/engine/session/internal/training/evaluated_data.h"

#include <fmt/format.h>

#include "moxing/job/distributed.h"
#include "runtime/base/log.h"
#include "runtime/data/content_sample.h"

namespace mox::internal {
namespace {

Dataset evaluated_samples(const RunSettings& settings, const Evaluator& evaluator) {
  if (!evaluator.samples()) return evaluator.dataset();
  const Dataset& samples = *evaluator.samples();
  int64_t count = 0;
  if (settings.limits.eval_steps == 0 ||
      __builtin_mul_overflow(settings.limits.eval_steps, settings.data.eval_batch_size, &count) ||
      (samples.cardinality() >= 0 && count >= samples.cardinality()))
    return samples;
  return samples.take(count);
}

// Of a data set of many files the description is long; what tells the contents comes first.
std::string beginning_of(const std::string& mark) {
  constexpr size_t kShown = 300;
  return mark.size() <= kShown ? mark : mark.substr(0, kShown) + "...";
}

}  // namespace

EvaluatedData find_evaluated_data(const Start& start, const Evaluator& evaluator) {
  const std::string mark =
      broadcast(start.saves() ? content_mark(evaluated_samples(start.settings, evaluator)) : "");
  if (mark.empty()) return {};
  const std::optional<std::string>& before = start.restored.evaluation_data;
  EvaluatedData data{.mark = mark,
                     .are_others = start.is_continued() && before && !are_of_the_same_data(*before, mark)};
  if (data.are_others && rank() == 0)
    log_warning(fmt::format(
        "the data of input_fn(eval) are others than those that the run in '{}' was evaluated on so far: they "
        "were '{}' and are '{}'. What compares evaluations begins anew: the best state (keep_best), "
        "early_stopping, plateau and the best values at the end. To go on with the comparison, evaluate on "
        "the former ones",
        start.settings.places.log_dir, beginning_of(*before), beginning_of(mark)));
  return data;
}

}  // namespace mox::internal
