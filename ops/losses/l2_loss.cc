#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor l2_loss(const Tensor& x, SourceLocation where) {
  NameScope scope("l2_loss");
  return mul(reduce_sum(square(x, where), {}, where), 0.5, where);
}

}  // namespace mox
