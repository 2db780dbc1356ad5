#include <algorithm>

#include "moxing/layers/internal/layer_support.h"
#include "ops/convolution/conv2d.h"
#include "runtime/graph/graph.h"

namespace mox::layers {

using internal::activated;
using internal::biased;
using internal::float32_of_rank;
using internal::require_positive;
using internal::scope_name;

Tensor conv2d_transpose(const Tensor& given, int64_t filters, std::array<int64_t, 2> kernel_size,
                        const Conv2dTransposeOptions& options, SourceLocation where) {
  const Tensor x = float32_of_rank(given, 4, "conv2d_transpose", where);
  require_positive(filters, "filters", "conv2d_transpose", where);
  require_positive(std::min(kernel_size[0], kernel_size[1]), "kernel height and width", "conv2d_transpose",
                   where);
  const LocationScope location(where);
  const VarScope scope = var_scope(scope_name(options.name, "conv2d_transpose"));
  const Tensor kernel =
      get_variable("kernel", {x.shape()[1], filters, kernel_size[0], kernel_size[1]},
                   options.kernel_initializer, {.regularizer = options.kernel_regularizer}, where);
  const Tensor y = mox::conv2d_transpose(x, kernel, {.strides = options.strides, .padding = options.padding});
  return activated(biased(y, options.use_bias, filters, options.bias_initializer, where), options.activation,
                   where);
}

}  // namespace mox::layers
