// The facts of the networks, counted in their graphs.
#include <fmt/format.h>
#include <runtime/graph/graph.h>

#include "models/zoo/internal/registry.h"

namespace mox {
namespace {

// Products of a convolution or a dense layer with its kernel, for the whole batch. Constant kernels
// (cifarnet's normalisation) are not counted, as in the published figures.
int64_t multiply_adds(const Node& node) {
  if (node.op->name != "conv2d" && node.op->name != "matmul") return 0;
  const Tensor& kernel = node.inputs[1];
  if (kernel.node()->op->kind != Op::Kind::kVariable) return 0;
  const int64_t outputs_of_kernel = node.op->name == "conv2d" ? kernel.shape()[0] : kernel.shape()[1];
  return node.outputs[0].shape.elements() * (kernel.shape().elements() / outputs_of_kernel);
}

}  // namespace

ModelMeta get_model_meta(std::string_view name) {
  const zoo::NetworkEntry& entry = zoo::network_entry(name);
  ModelMeta meta{.name = std::string(entry.name),
                 .paper = std::string(entry.paper),
                 .image_size = entry.image_size,
                 .channels = entry.channels,
                 .num_classes = entry.num_classes,
                 .dropout = entry.dropout,
                 .has_batch_norm = entry.has_batch_norm,
                 .takes_any_image_size = entry.takes_any_image_size,
                 .head = fmt::format("{}/{}", entry.name, zoo::Network::kHead)};
  Graph graph;
  const GraphScope scope(graph);
  const TensorType one_image{DType::kFloat32, {1, entry.channels, entry.image_size, entry.image_size}};
  get_model_fn(name)(graph.input(0, one_image, SourceLocation::current()), ModeKeys::EVAL);
  for (const Tensor& variable : graph.variables())
    (graph.spec(variable).trainable ? meta.parameters : meta.moving_averages) += variable.shape().elements();
  for (const auto& node : graph.nodes()) meta.multiply_adds += multiply_adds(*node);
  return meta;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const zoo::NetworkEntry& entry : zoo::network_entries()) names.emplace_back(entry.name);
  return names;
}

}  // namespace mox
