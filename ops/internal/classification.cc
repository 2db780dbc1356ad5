#include "ops/internal/classification.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/internal/shape_rules.h"

namespace mox::internal {

void require_logits_and_labels(const OpCall& call, std::string_view logits, std::string_view labels) {
  if (call.shape(0).rank() != 2 || call.shape(0)[1] < 1 || call.shape(1).rank() != 1 ||
      call.shape(1)[0] != call.shape(0)[0])
    call.fail(fmt::format("{} [batch, classes] with at least one class and {} [batch]", logits, labels));
  require_float32(call, 0, logits);
  require_indices(call, 1, labels);
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
