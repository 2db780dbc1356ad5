#include <string>

#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/support/require_same_type.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox {

Tensor huber_loss(const Tensor& predictions, const Tensor& labels, HuberLossOptions options,
                  SourceLocation where) {
  require_same_type("huber_loss", predictions, labels, where);
  if (!(options.delta > 0))
    throw InvalidArgument("huber_loss at " + to_string(where) + ": expected delta > 0; given " +
                          std::to_string(options.delta));
  NameScope scope("huber_loss");
  const Tensor error = abs(sub(predictions, labels, where), where);
  const Tensor quadratic = minimum(error, options.delta, where);
  const Tensor linear = sub(error, quadratic, where);
  return reduce_mean(add(mul(square(quadratic, where), 0.5, where), mul(linear, options.delta, where), where),
                     {}, where);
}

}  // namespace mox
