#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/support/require_same_type.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& labels, SourceLocation where) {
  require_same_type("sigmoid_cross_entropy", logits, labels, where);
  NameScope scope("sigmoid_cross_entropy");
  // softplus(x) is max(x, 0) + ln(1 + e^-|x|).
  return sub(softplus(logits, where), mul(logits, labels, where), where);
}

}  // namespace mox
