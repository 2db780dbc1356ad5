#include "ops/losses/l2_loss.h"

#include "ops/arithmetic/mul.h"
#include "ops/arithmetic/square.h"
#include "ops/reduction/reduce_sum.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor l2_loss(const Tensor& x, SourceLocation where) {
  NameScope scope("l2_loss");
  return mul(reduce_sum(square(x, where), {}, where), 0.5, where);
}

}  // namespace mox
