#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/support/require_same_type.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor mean_squared_error(const Tensor& predictions, const Tensor& labels, SourceLocation where) {
  require_same_type("mean_squared_error", predictions, labels, where);
  NameScope scope("mean_squared_error");
  return reduce_mean(square(sub(predictions, labels, where), where), {}, where);
}

}  // namespace mox
