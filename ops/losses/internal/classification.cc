#include "ops/losses/internal/classification.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/support/shape_rules.h"

namespace mox::internal {

void require_logits_and_labels(const OpCall& call, std::string_view logits, std::string_view labels) {
  if (call.shape(0).rank() != 2 || call.shape(0)[1] < 1 || call.shape(1).rank() != 1 ||
      call.shape(1)[0] != call.shape(0)[0])
    call.fail(fmt::format("{} [batch, classes] with at least one class and {} [batch]", logits, labels));
  require_float32(call, 0, logits);
  require_indices(call, 1, labels);
}

void require_logits_and_distributions(const OpCall& call) {
  call.require(call.shape(0).rank() == 2 && call.shape(0)[1] >= 1 && call.shape(1) == call.shape(0),
               "logits and labels of one shape [batch, classes] with at least one class");
  require_float32(call, 0, "logits");
  require_float32(call, 1, "labels");
}

void require_statistics_and_loss_gradient(const OpCall& call) {
  const int64_t batch = call.shape(0)[0];
  const TensorType statistics{DType::kFloat32, Shape{2, batch}}, gradient{DType::kFloat32, Shape{batch}};
  call.require(call.type(2) == statistics && call.type(3) == gradient,
               "statistics [2, batch] and a loss gradient [batch], both float32");
}

void require_smoothing(const OpCall& call) {
  const double smoothing = call.attributes.get<double>("label_smoothing");
  call.require(smoothing >= 0 && smoothing < 1, "label_smoothing in [0, 1)");
}

int64_t elements_ranked_before(const float* row, int64_t length, int64_t target, bool first_wins) {
  const float value = row[target];
  int32_t not_finite = 0, larger = 0, equal_before = 0;
  for (int64_t i = 0; i < length; ++i) {
    not_finite += !(std::fabs(row[i]) <= std::numeric_limits<float>::max());
    larger += row[i] > value;
  }
  if (not_finite > 0) return -1;
  if (first_wins)
    for (int64_t i = 0; i < target; ++i) equal_before += row[i] == value;
  return larger + equal_before;
}

}  // namespace mox::internal
