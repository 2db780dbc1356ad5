#include "moxing/engine/compile/internal/likely_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

void warn_of_likely_mistakes(const Graph& graph, const std::vector<TensorType>& signature) {
  if (!signature.empty() && signature[0].shape.rank() > 0) warn_of_all_pairs(graph, signature[0].shape[0]);
  warn_of_probabilities(graph);
}

}  // namespace mox::internal
