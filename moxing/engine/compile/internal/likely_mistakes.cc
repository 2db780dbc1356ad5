#include "moxing/engine/compile/internal/likely_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "moxing/engine/compile/internal/sample_means.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace mox::internal {
namespace {

// As [n, 1] - [n] in a loss, of which a model learns the mean of all labels.
void warn_of_all_pairs(const Graph& graph, int64_t samples) {
  const Node* const node = first_of_all_pairs(graph, samples);
  if (!node) return;
  log_warning(fmt::format(
      "{} ({}) has operands of the shapes [{}] and [{}, 1], one number a sample each, and gives {}: every "
      "sample of the batch with every other one. If each belongs to its own give both one shape (squeeze, "
      "reshape); if all pairs are meant, expand_dims of both, to [n, 1] and [1, n], says so",
      node->op->name, to_string(node->where), samples, samples, to_string(node->outputs[0])));
}

// The op that made the numbers of a tensor, whatever shape they have got since.
std::string_view maker_of(const Tensor& tensor) {
  const Node* node = tensor.node();
  for (;;) {
    const std::string_view op = node->op->name;
    if (op != "reshape" && op != "squeeze" && op != "expand_dims") return op;
    node = node->inputs[0].node();
  }
}

// sigmoid_cross_entropy is no op of its own: it begins with softplus of the logits.
bool takes_probabilities_for_logits(const Node& node) {
  const std::string_view op = node.op->name;
  if (op == "softmax_cross_entropy" || op == "sparse_softmax_cross_entropy")
    return maker_of(node.inputs[0]) == "softmax";
  return op == "softplus" && node.name.find("sigmoid_cross_entropy/") != std::string::npos &&
         maker_of(node.inputs[0]) == "sigmoid";
}

void warn_of_probabilities(const Graph& graph) {
  const auto found = std::ranges::find_if(
      graph.nodes(), [](const auto& node) { return takes_probabilities_for_logits(*node); });
  if (found == graph.nodes().end()) return;
  const std::string_view maker = maker_of((*found)->inputs[0]);
  log_warning(fmt::format(
      "the cross entropy at {} takes logits, and is given what {} has made of them: it would be applied "
      "twice, which learns slowly and never to the end. Give it the input of {}",
      to_string((*found)->where), maker, maker));
}

// Whether a tensor is a component of the data in another type, range or shape.
bool is_of_the_data(const Tensor& tensor) {
  constexpr std::string_view kSmall[] = {"cast", "mul",     "sub",     "add",
                                         "div",  "reshape", "squeeze", "expand_dims"};
  const Node* node = tensor.node();
  while (node->op->name != "input") {
    if (std::ranges::find(kSmall, node->op->name) == std::end(kSmall)) return false;
    // Of x * c and c * x what is as large as the result.
    const auto whole = std::ranges::find_if(node->inputs, [&](const Tensor& input) {
      return input.shape().elements() == node->outputs[0].shape.elements();
    });
    if (whole == node->inputs.end()) return false;
    node = whole->node();
  }
  return true;
}

// A window moves over images that are as wide as images have channels, and of which each has as many channels
// as others have pixels.
bool takes_channels_last(const Node& node) {
  constexpr int64_t kFewestPixels = 8;
  if (node.op->name != "conv2d" || node.traits.is_gradient) return false;
  const Shape &x = node.inputs[0].shape(), &window = node.inputs[1].shape();
  const bool is_like_channels = x[3] == 1 || x[3] == 3 || x[3] == 4;
  return is_like_channels && x[1] >= kFewestPixels && x[2] >= kFewestPixels && window[3] > 1 &&
         is_of_the_data(node.inputs[0]);
}

void warn_of_channels_last(const Graph& graph) {
  const auto found =
      std::ranges::find_if(graph.nodes(), [](const auto& node) { return takes_channels_last(*node); });
  if (found == graph.nodes().end()) return;
  const Shape& x = (*found)->inputs[0].shape();
  log_warning(fmt::format(
      "the convolution at {} takes the data as {}, which is [batch, channels, height, width]: {} channels of {} x "
      "{} pixels. Of [batch, height, width, channels] transpose(x, {{0, 3, 1, 2}}) makes what is meant",
      to_string((*found)->where), to_string((*found)->inputs[0].type()), x[1], x[2], x[3]));
}

}  // namespace

void warn_of_likely_mistakes(const Graph& graph, const std::vector<TensorType>& signature) {
  if (!signature.empty() && signature[0].shape.rank() > 0) warn_of_all_pairs(graph, signature[0].shape[0]);
  warn_of_probabilities(graph);
  warn_of_channels_last(graph);
}

}  // namespace mox::internal
