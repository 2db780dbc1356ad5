// A session that knows of which data its evaluations are, for hooks that compare one with those
// of earlier starts.
#pragma once

#include <optional>
#include <string>

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

}  // namespace mox::internal
