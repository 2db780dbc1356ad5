#include "moxing/layers/internal/layer_support.h"
#include "moxing/layers/layers.h"
#include "ops/indexing/indexing.h"
#include "runtime/graph/graph.h"

namespace mox::layers {

using internal::require_positive;
using internal::scope_name;

Tensor embedding(const Tensor& ids, int64_t vocabulary, int64_t width, const EmbeddingOptions& options,
                 SourceLocation where) {
  require_positive(vocabulary, "vocabulary", "embedding", where);
  require_positive(width, "width", "embedding", where);
  const LocationScope location(where);
  const VarScope scope = var_scope(scope_name(options.name, "embedding"));
  return embedding_lookup(get_variable("table", {vocabulary, width}, options.initializer, {}, where), ids);
}

}  // namespace mox::layers
