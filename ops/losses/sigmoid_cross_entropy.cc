#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/support/require_same_type.h"
#include "runtime/graph/graph.h"

namespace mox {

// softplus(x) - x z would cancel where a label of 1 meets a large logit. Here nothing does, nor in the
// gradient (1 - z) s(x) - z s(-x), and at x = 0 there is no kink.
Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& labels, SourceLocation where) {
  require_same_type("sigmoid_cross_entropy", logits, labels, where);
  NameScope scope("sigmoid_cross_entropy");
  const Tensor of_negatives = mul(sub(1.0f, labels, where), softplus(logits, where), where);
  const Tensor of_positives = mul(labels, softplus(neg(logits, where), where), where);
  return add(of_negatives, of_positives, where);
}

}  // namespace mox
