#include <fmt/format.h>

#include <algorithm>

#include "moxing/config/options.h"
#include "moxing/config/state.h"
#include "moxing/layers/internal/layer_support.h"
#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox::layers {

using internal::activated;
using internal::scope_name;

Tensor batch_norm(const Tensor& x, ModeKeys mode, const BatchNormOptions& options, SourceLocation where) {
  if (!x.defined() || x.shape().rank() < 2)
    throw InvalidArgument(fmt::format("the layer batch_norm at {}: expected [batch, channels, ...]; given {}",
                                      to_string(where), to_string(x)));
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw InvalidArgument(fmt::format("the layer batch_norm at {}: momentum must be in [0, 1], got {}",
                                      to_string(where), options.momentum));
  const LocationScope location(where);
  const VarScope scope = var_scope(scope_name(options.name, "batch_norm"));
  const Shape channels{x.shape()[1]};
  const Tensor scale = get_variable("scale", channels, options.scale_initializer, {}, where);
  const Tensor offset = get_variable("offset", channels, options.offset_initializer, {}, where);
  const Tensor moving_mean = get_variable("moving_mean", channels, zeros(), {.trainable = false}, where);
  const Tensor moving_variance =
      get_variable("moving_variance", channels, ones(), {.trainable = false}, where);
  if (mode != ModeKeys::TRAIN)
    return activated(
        batch_norm_inference(x, scale, offset, moving_mean, moving_variance, {.epsilon = options.epsilon}),
        options.activation, where);
  BatchNormResult result;
  // The moving variance estimates that of all images; the batch's is that of the values that are there.
  Tensor unbiased;
  // A graph may be built without mox::init: then there are no options, and no other replicas.
  if (mox::internal::is_configured() && resolve<bool>("sync_batch_norm", std::nullopt)) {
    const SyncBatchNormResult all = sync_batch_norm(x, scale, offset, {.epsilon = options.epsilon});
    result = {all.y, all.mean, all.variance};
    unbiased = all.variance * (all.values / maximum(all.values - 1.0f, 1.0f));
  } else {
    result = mox::batch_norm(x, scale, offset, {.epsilon = options.epsilon});
    const int64_t values = x.shape().elements() / std::max<int64_t>(1, x.shape()[1]);
    unbiased = result.variance *
               (values > 1 ? static_cast<float>(static_cast<double>(values) / static_cast<double>(values - 1))
                           : 1.0f);
  }
  // A layer that is shared by several uses counts them in turn.
  Graph& graph = current_graph("batch_norm");
  auto move = [&](const Tensor& moving, const Tensor& batch) {
    const Tensor earlier = graph.find_update(moving);
    const Tensor value = earlier.defined() ? earlier : moving;
    graph.set_update({moving, value * options.momentum + stop_gradient(batch) * (1.0f - options.momentum)});
  };
  move(moving_mean, result.mean);
  move(moving_variance, unbiased);
  return activated(result.y, options.activation, where);
}

}  // namespace mox::layers
