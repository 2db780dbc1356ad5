// A session that knows of which data its evaluations are, for hooks that compare one with those
// of earlier starts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mox::internal {

class EvaluationData {
 public:
  // content_mark (runtime/data/content_sample.h); none where nothing is saved or evaluated.
  virtual const std::optional<std::string>& evaluation_data() const = 0;
  // Whether those of the checkpoint that the run goes on from were others. False where it does not know.
  virtual bool evaluation_data_are_others() const = 0;

 protected:
  ~EvaluationData() = default;
};

// Of hooks whose state is values of evaluations, which say nothing beside those of other data.
inline constexpr std::string_view kEarlyStoppingName = "early_stopping/";   // and the metric
inline constexpr std::string_view kPlateauName = "plateau_learning_rate/";  // and the metric

// Whether the state of the hook of that name is of no use where the evaluations are of other data. That of
// keep_best_hook is: it says nothing but whose state is kept, which itself knows of which data it is.
inline bool compares_evaluations(std::string_view hook) {
  return hook.starts_with(kEarlyStoppingName) || hook.starts_with(kPlateauName);
}

}  // namespace mox::internal
