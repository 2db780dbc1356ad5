#include "ops/l2_loss.h"

#include "ops/mul.h"
#include "ops/reduce_sum.h"
#include "ops/square.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor l2_loss(const Tensor& x, SourceLocation where) {
  NameScope scope("l2_loss");
  return mul(reduce_sum(square(x, where), {}, where), 0.5, where);
}

}  // namespace mox
