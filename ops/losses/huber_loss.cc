#include <fmt/format.h>

#include "ops/arithmetic/arithmetic.h"
#include "ops/losses/losses.h"
#include "ops/reduction/reduction.h"
#include "ops/support/require_same_type.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/float32_range.h"

namespace mox {

Tensor huber_loss(const Tensor& predictions, const Tensor& labels, HuberLossOptions options,
                  SourceLocation where) {
  require_same_type("huber_loss", predictions, labels, where);
  if (!is_finite_float32(options.delta) || !(static_cast<float>(options.delta) > 0))
    throw InvalidArgument(
        fmt::format("huber_loss at {}: expected a finite delta > 0, as a float32 too; given {}",
                    to_string(where), options.delta));
  NameScope scope("huber_loss");
  const Tensor error = abs(sub(predictions, labels, where), where);
  const Tensor quadratic = minimum(error, options.delta, where);
  const Tensor linear = sub(error, quadratic, where);
  return reduce_mean(add(mul(square(quadratic, where), 0.5, where), mul(linear, options.delta, where), where),
                     {}, where);
}

}  // namespace mox
