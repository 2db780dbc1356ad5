#include <fmt/format.h>

#include <algorithm>

#include "moxing/layers/internal/layer_support.h"
#include "moxing/model/training_facts.h"
#include "ops/normalisation/normalisation.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox::layers {

using internal::activated;
using internal::scope_name;
namespace {

[[noreturn]] void refuse_one_value(const Tensor& x, const Tensor& scale, SourceLocation where) {
  throw InvalidArgument(fmt::format(
      "batch normalisation at {} over one value a channel: its input {} ('{}') has one sample of one pixel, "
      "so that every value would become the offset, and nothing could be learnt. Raise batch_size (it counts "
      "for each logical replica), set sync_batch_norm where several replicas compute a step, or leave the "
      "layer out",
      to_string(where), to_string(x.type()), scale.name()));
}

}  // namespace

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
  // Of a layer that is not trained the averages stay as they are, too.
  const bool is_frozen = mox::internal::is_frozen(scale) && mox::internal::is_frozen(offset);
  if (mode != ModeKeys::TRAIN || is_frozen)
    return activated(
        batch_norm_inference(x, scale, offset, moving_mean, moving_variance, {.epsilon = options.epsilon}),
        options.activation, where);
  const bool is_shared =
      mox::internal::training_facts().normalises_together && mox::internal::training_facts().replicas != 1;
  const int64_t values = x.shape().elements() / std::max<int64_t>(1, x.shape()[1]);
  if (values == 1 && !is_shared && !mox::internal::training_facts().is_short_batch)
    refuse_one_value(x, scale, where);
  BatchNormResult result;
  // The moving variance estimates that of all images; the batch's is that of the values that are there. One
  // value has none, and leaves it as it is.
  Tensor unbiased;
  Tensor has_variance;  // undefined: the shape says it
  if (is_shared) {
    const SyncBatchNormResult all = sync_batch_norm(x, scale, offset, {.epsilon = options.epsilon});
    result = {all.y, all.mean, all.variance};
    unbiased = all.variance * (all.values / maximum(all.values - 1.0f, 1.0f));
    // Of a full batch of one value, too: at the end of the data it may be the only one.
    if (mox::internal::training_facts().is_short_batch || values == 1)
      has_variance = greater(all.values, 1.0f);
  } else {
    result = mox::batch_norm(x, scale, offset, {.epsilon = options.epsilon});
    unbiased = result.variance *
               (values > 1 ? static_cast<float>(static_cast<double>(values) / (values - 1)) : 1.0f);
  }
  // A layer that is shared by several uses counts them in turn.
  Graph& graph = current_graph("batch_norm");
  auto earlier = [&](const Tensor& moving) {
    const Tensor value = graph.find_after_step_value(moving);
    return value.defined() ? value : moving;
  };
  auto moved = [&](const Tensor& moving, const Tensor& batch) {
    return earlier(moving) * options.momentum + stop_gradient(batch) * (1.0f - options.momentum);
  };
  graph.set_after_step_value({moving_mean, moved(moving_mean, result.mean)});
  // What replicas average is the same for all of them, so it is said of one value, too.
  Tensor variance = earlier(moving_variance);
  if (has_variance.defined())
    variance = select(has_variance, moved(moving_variance, unbiased), variance);
  else if (values != 1)
    variance = moved(moving_variance, unbiased);
  graph.set_after_step_value({moving_variance, variance});
  return activated(result.y, options.activation, where);
}

}  // namespace mox::layers
