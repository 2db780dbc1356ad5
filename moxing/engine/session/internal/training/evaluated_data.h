// Of which data the evaluations of a training are, over its starts.
#pragma once

#include <optional>
#include <string>

#include "moxing/engine/session/internal/evaluator.h"
#include "moxing/engine/session/internal/start.h"

namespace mox::internal {

struct EvaluatedData {
  std::optional<std::string> mark;  // content_mark, as rank 0 finds it; none where nothing is saved
  bool are_others = false;          // than those of the checkpoint that the run goes on from
};

// Of samples where these are known, whatever the size of the batches. Warns where they are others: no value
// of an evaluation then says anything of the ones before. All ranks of the job call it together.
EvaluatedData find_evaluated_data(const Start& start, const Evaluator& evaluator);

}  // namespace mox::internal
