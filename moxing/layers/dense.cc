#include "moxing/layers/internal/layer_support.h"
#include "moxing/layers/layers.h"
#include "ops/matmul/matmul.h"
#include "runtime/graph/graph.h"

namespace mox::layers {

using internal::activated;
using internal::biased;
using internal::float32_of_rank;
using internal::require_positive;
using internal::scope_name;

Tensor dense(const Tensor& given, int64_t units, const DenseOptions& options, SourceLocation where) {
  const Tensor x = float32_of_rank(given, 2, "dense", where);
  require_positive(units, "units", "dense", where);
  const LocationScope location(where);
  const VarScope scope = var_scope(scope_name(options.name, "dense"));
  const Tensor kernel = get_variable("kernel", {x.shape()[1], units}, options.kernel_initializer,
                                     {.regularizer = options.kernel_regularizer}, where);
  const Tensor y = biased(matmul(x, kernel), options.use_bias, units, options.bias_initializer, where);
  return activated(y, options.activation, where);
}

}  // namespace mox::layers
