#include "models/zoo/internal/network.h"

#include <fmt/format.h>

namespace mox {

const Tensor& NetworkOutput::end_point(std::string_view name) const {
  std::string known;
  for (const auto& [known_name, tensor] : end_points) {
    if (known_name == name) return tensor;
    known += (known.empty() ? "" : ", ") + known_name;
  }
  throw NotFound(fmt::format("the network has no end point '{}'; it has: {}", name, known));
}

namespace zoo {

Regularizer Network::regularizer() const {
  return settings_.weight_decay > 0 ? l2_regularizer(settings_.weight_decay) : Regularizer{};
}

layers::Conv2dOptions Network::conv_options(int64_t kernel, const std::string& name,
                                            const LayerOptions& options) const {
  return {.name = name,
          .strides = {options.stride, options.stride},
          .groups = options.groups,
          .padding = options.padding.value_or(Padding::of((kernel - 1) / 2)),
          .kernel_regularizer = regularizer()};
}

Tensor Network::conv(const Tensor& x, int64_t filters, int64_t kernel, const std::string& name,
                     const LayerOptions& options) {
  layers::Conv2dOptions layer = conv_options(kernel, name, options);
  layer.activation = options.activation;
  return layers::conv2d(x, filters, {kernel, kernel}, layer);
}

Tensor Network::conv_without_bias(const Tensor& x, int64_t filters, int64_t kernel, const std::string& name,
                                  const LayerOptions& options) {
  layers::Conv2dOptions layer = conv_options(kernel, name, options);
  layer.use_bias = false;
  return layers::conv2d(x, filters, {kernel, kernel}, layer);
}

Tensor Network::conv_batch_norm(const Tensor& x, int64_t filters, int64_t kernel, const std::string& name,
                                const LayerOptions& options) {
  return batch_norm(conv_without_bias(x, filters, kernel, name, options), name + "/batch_norm",
                    options.activation);
}

Tensor Network::batch_norm(const Tensor& x, const std::string& name, const layers::Activation& activation) {
  return layers::batch_norm(x, mode_,
                            {.name = name,
                             .momentum = settings_.batch_norm_momentum,
                             .epsilon = settings_.batch_norm_epsilon,
                             .activation = activation});
}

Tensor Network::dense(const Tensor& x, int64_t units, const std::string& name,
                      const layers::Activation& activation) {
  return layers::dense(x, units,
                       {.name = name, .activation = activation, .kernel_regularizer = regularizer()});
}

Tensor Network::dropout(const Tensor& x) {
  return settings_.dropout > 0 ? layers::dropout(x, settings_.dropout, mode_) : x;
}

Tensor Network::projection_shortcut(const Tensor& x, int64_t filters, int64_t stride) {
  const RecomputeScope scope(settings_.recompute_shortcuts);
  return conv_batch_norm(x, filters, 1, "shortcut", {.stride = stride, .activation = {}});
}

Tensor Network::end_point(std::string_view name, const Tensor& x) {
  end_points_.emplace_back(name, x);
  return x;
}

NetworkOutput Network::classify(const Tensor& x) {
  if (settings_.num_classes == 0) return {.logits = x, .end_points = end_points_};
  const Tensor logits = end_point("logits", dense(x, settings_.num_classes, kHead));
  end_point("predictions", softmax(logits));
  return {.logits = logits, .end_points = end_points_};
}

NetworkOutput Network::classify_global_mean(const Tensor& x, bool with_dropout) {
  const Tensor mean = end_point("global_pool", flatten(global_avg_pool(x)));
  return classify(with_dropout ? dropout(mean) : mean);
}

}  // namespace zoo
}  // namespace mox
