#include "ops/convolution/conv2d.h"

#include <fmt/format.h>

#include <algorithm>

#include "moxing/layers/internal/layer_support.h"
#include "moxing/layers/layers.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox::layers {

using internal::activated;
using internal::biased;
using internal::float32_of_rank;
using internal::require_positive;
using internal::scope_name;

Tensor conv2d(const Tensor& given, int64_t filters, std::array<int64_t, 2> kernel_size,
              const Conv2dOptions& options, SourceLocation where) {
  const Tensor x = float32_of_rank(given, 4, "conv2d", where);
  require_positive(filters, "filters", "conv2d", where);
  require_positive(options.groups, "groups", "conv2d", where);
  require_positive(std::min(kernel_size[0], kernel_size[1]), "kernel height and width", "conv2d", where);
  const int64_t channels = x.shape()[1];
  if (channels % options.groups != 0 || filters % options.groups != 0)
    throw InvalidArgument(
        fmt::format("the layer conv2d at {}: groups ({}) must divide the channels ({}) and the filters ({})",
                    to_string(where), options.groups, channels, filters));
  const LocationScope location(where);
  const VarScope scope = var_scope(scope_name(options.name, "conv2d"));
  const Tensor kernel =
      get_variable("kernel", {filters, channels / options.groups, kernel_size[0], kernel_size[1]},
                   options.kernel_initializer, {.regularizer = options.kernel_regularizer}, where);
  const Tensor y = mox::conv2d(x, kernel,
                               {.strides = options.strides,
                                .dilations = options.dilations,
                                .groups = options.groups,
                                .padding = options.padding});
  return activated(biased(y, options.use_bias, filters, options.bias_initializer, where), options.activation,
                   where);
}

}  // namespace mox::layers
