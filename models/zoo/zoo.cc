#include "models/zoo/zoo.h"

#include <fmt/format.h>

#include "models/zoo/internal/registry.h"

namespace mox {
namespace {

using zoo::NetworkEntry;
using zoo::NetworkSettings;

void require(bool condition, const NetworkEntry& entry, std::string_view option, std::string_view expected) {
  if (!condition)
    throw InvalidArgument(fmt::format("the network {}: {} must be {}", entry.name, option, expected));
}

NetworkSettings checked_settings(const NetworkEntry& entry, const NetworkOptions& options) {
  require(options.num_classes.value_or(1) >= 0, entry, "num_classes", ">= 1, or 0 for no last layer");
  require(options.image_size.value_or(1) >= 1, entry, "image_size", ">= 1");
  require(options.weight_decay >= 0, entry, "weight_decay", ">= 0");
  if (options.batch_norm_momentum) {
    require(entry.has_batch_norm, entry, "batch_norm_momentum", "left out: it has no batch normalisation");
    require(*options.batch_norm_momentum >= 0 && *options.batch_norm_momentum <= 1, entry,
            "batch_norm_momentum", "in [0, 1]");
  }
  if (options.batch_norm_epsilon) {
    require(entry.has_batch_norm, entry, "batch_norm_epsilon", "left out: it has no batch normalisation");
    require(*options.batch_norm_epsilon > 0, entry, "batch_norm_epsilon", "> 0");
  }
  if (options.dropout) {
    require(entry.dropout.has_value(), entry, "dropout", "left out: it has no dropout");
    require(*options.dropout >= 0 && *options.dropout < 1, entry, "dropout", "in [0, 1)");
  }
  if (options.recompute_shortcuts)
    require(entry.has_projections, entry, "recompute_shortcuts",
            "left out: its shortcuts are no convolutions with normalisation");
  return {.num_classes = options.num_classes.value_or(entry.num_classes),
          .weight_decay = options.weight_decay,
          .batch_norm_momentum = options.batch_norm_momentum.value_or(0.9f),
          .batch_norm_epsilon = options.batch_norm_epsilon.value_or(1e-5f),
          .dropout = options.dropout.value_or(entry.dropout.value_or(0.0f)),
          .recompute_shortcuts = options.recompute_shortcuts};
}

void check_images(const NetworkEntry& entry, const Tensor& images, std::optional<int64_t> size) {
  const bool is_image = images.defined() && is_floating(images.dtype()) && images.shape().rank() == 4;
  if (is_image && (!size || (images.shape()[2] == *size && images.shape()[3] == *size))) return;
  const std::string expected =
      size ? fmt::format("[batch, channels, {}, {}]", *size, *size) : "[batch, channels, height, width]";
  throw InvalidArgument(fmt::format(
      "the network {}: expected float32 or bfloat16 images {}; given {}{}", entry.name, expected,
      to_string(images), is_image ? "; the option image_size makes the network for another size" : ""));
}

}  // namespace

NetworkFn get_model_fn(std::string_view name, const NetworkOptions& options) {
  const NetworkEntry& entry = zoo::network_entry(name);
  const NetworkSettings settings = checked_settings(entry, options);
  std::optional<int64_t> size = options.image_size;
  if (!size && !entry.takes_any_image_size) size = entry.image_size;
  return [&entry, settings, size](const Tensor& images, ModeKeys mode) {
    check_images(entry, images, size);
    const VarScope scope = var_scope(entry.name);
    zoo::Network network(settings, mode);
    return entry.build(network, cast(images, DType::kFloat32));
  };
}

}  // namespace mox
