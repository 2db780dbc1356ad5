#include "moxing/engine/compile/internal/regularized_loss.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "ops/ops.h"
#include "runtime/base/log.h"

namespace mox::internal {
namespace {

// All nodes that `tensor` is computed from, its own included.
std::set<const Node*> nodes_of(const Tensor& tensor) {
  std::set<const Node*> found;
  std::vector<const Node*> to_visit = {tensor.node()};
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    if (!found.insert(node).second) continue;
    for (const Tensor& input : node->inputs) to_visit.push_back(input.node());
  }
  return found;
}

}  // namespace

Tensor regularized_loss(const Graph& graph, const ModelSpec& spec) {
  const std::vector<Tensor>& penalties = graph.collection("regularization_losses");
  const std::set<const Node*> counted = penalties.empty() ? std::set<const Node*>() : nodes_of(spec.loss);
  Tensor total = spec.loss;
  const LocationScope where(total.where());
  size_t counted_already = 0;
  for (const Tensor& penalty : penalties) {
    if (counted.contains(penalty.node()))
      ++counted_already;
    else
      total = total + penalty;
  }
  if (counted_already > 0)
    log_info(fmt::format(
        "{} of the {} regularization_losses are part of ModelSpec::loss already, as model_fn adds them; {}",
        counted_already, penalties.size(),
        counted_already == penalties.size() ? "none is added a second time" : "only the others are added"));
  return total;
}

}  // namespace mox::internal
