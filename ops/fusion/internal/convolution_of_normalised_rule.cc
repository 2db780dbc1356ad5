#include "ops/fusion/internal/convolution_of_normalised_rule.h"

#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"
#include "ops/convolution/winograd/fused_inputs.h"
#include "ops/convolution/winograd/of_normalised.h"
#include "ops/fusion/batch_norm_node.h"
#include "ops/fusion/internal/nodes/convolution_of_normalised_node.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

const Node* first_reader_of(const Node& node, const RewriteView& view) {
  const auto readers = view.readers(Tensor(const_cast<Node*>(&node), 0));
  return readers.empty() ? nullptr : readers.front();
}

bool is_relu(const Attributes& activation) {
  return activation.get<bool>("open") && activation.get<double>("low") == 0;
}

std::optional<std::vector<Tensor>> leave_out_image(const Node& node, const RewriteView& view) {
  if (node.op != &conv2d_of_normalised_op() || !node.attributes.get<bool>("has_image") ||
      view.uses(Tensor(const_cast<Node*>(&node), 2)) > 0)
    return std::nullopt;
  const auto inputs = each_of<OfNormalisedInputs>(unpack<OfNormalisedInputs>(node), view.mapping());
  Attributes attributes = node.attributes;
  attributes.set("has_image", false);
  Node& fresh = make_packed_node<OfNormalisedInputs>(conv2d_of_normalised_op(), inputs, std::move(attributes),
                                                     node.where);
  // x: of the type of what nobody reads
  return {{fresh.output(0).named(node.name), fresh.output(1), inputs.x}};
}

}  // namespace

const Node* convolution_of_normalised(const Node& normalisation, const RewriteView& view) {
  if (!is_relu(normalisation.attributes)) return nullptr;
  const Node* reader = first_reader_of(normalisation, view);
  if (!reader || reader->op != &conv2d_op() || reader->attributes.has(kSumsDirectly)) return nullptr;
  const Node* next = first_reader_of(*reader, view);
  if (!next || next->op != &batch_norm_activation_op() ||
      unpack<normalisation::ForwardInputs>(*next).x.node() != reader)
    return nullptr;
  const ConvolutionInputs<Tensor> inputs = unpack<ConvolutionInputs>(*reader);
  const ConvolutionGeometry geometry =
      resolve_convolution(reader->attributes, inputs.image.type(), inputs.filter.type());
  return winograd_of_normalised_groups(geometry) > 0 ? reader : nullptr;
}

NamedRule unneeded_normalised_image_rule() {
  return {"normalised images that stay in the caches", leave_out_image,
          [](const Node& node) { return node.op == &conv2d_of_normalised_op(); }};
}

}  // namespace mox
