#include "moxing/layers/internal/layer_support.h"

#include <fmt/format.h>

#include "ops/arithmetic/arithmetic.h"
#include "ops/normalisation/normalisation.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox::layers::internal {

std::string scope_name(const std::string& given, std::string_view kind) {
  if (!given.empty()) return given;
  const std::string& outside = current_name_scope();
  return current_graph(kind).free_scope(outside + std::string(kind)).substr(outside.size());
}

Tensor float32_of_rank(const Tensor& x, int rank, std::string_view layer, SourceLocation where) {
  if (!x.defined() || x.shape().rank() != rank || !is_floating(x.dtype()))
    throw InvalidArgument(
        fmt::format("the layer {} at {}: expected a float32 or bfloat16 tensor of rank {}; given {}", layer,
                    to_string(where), rank, to_string(x)));
  return cast(x, DType::kFloat32, where);
}

void require_positive(int64_t value, std::string_view what, std::string_view layer, SourceLocation where) {
  if (value < 1)
    throw InvalidArgument(
        fmt::format("the layer {} at {}: {} must be >= 1, got {}", layer, to_string(where), what, value));
}

Tensor activated(const Tensor& y, const Activation& activation, SourceLocation where) {
  return activation ? activation(y, where) : y;
}

Tensor biased(const Tensor& y, bool use_bias, int64_t channels, const Initializer& initializer,
              SourceLocation where) {
  return use_bias ? bias_add(y, get_variable("bias", {channels}, initializer, {}, where), where) : y;
}

}  // namespace mox::layers::internal
