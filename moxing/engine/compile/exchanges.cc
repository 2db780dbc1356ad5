#include "moxing/engine/compile/exchanges.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

std::string text_of(const std::vector<Exchange>& exchanges, size_t index) {
  if (index >= exchanges.size()) return "nothing";
  return fmt::format("{} at {}", to_string(exchanges[index].type), to_string(exchanges[index].where));
}

}  // namespace

std::vector<Exchange> exchanges_of(const Graph& graph, const PlanRequest& request) {
  std::vector<bool> needed(graph.nodes().size(), false);
  const auto need = [&](const Tensor& tensor) { needed[tensor.node()->id] = true; };
  std::ranges::for_each(request.fetches, need);
  for (const GradientOutput& output : request.gradients) need(output.gradient);
  for (const AfterStepValue& after : request.after_step_values) need(after.value);
  std::vector<Exchange> found;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!needed[(*node)->id]) continue;
    std::ranges::for_each((*node)->inputs, need);
    const std::string_view op = (*node)->op->name;
    if (op == "replica_sum" || op == "replica_sum_gradient")
      found.push_back({std::string(op), (*node)->outputs[0], (*node)->where});
  }
  std::ranges::reverse(found);
  return found;
}

void require_equal_exchanges(const std::vector<Exchange>& full, const std::vector<Exchange>& small) {
  const auto [first, second] =
      std::ranges::mismatch(full, small, [](const Exchange& a, const Exchange& b) { return a.is_like(b); });
  if (first == full.end() && second == small.end()) return;
  const size_t index = first - full.begin();
  throw FailedPrecondition(fmt::format(
      "the replicas of a step sum with each other (replica_sum), and all must sum the same: sum {} "
      "is of {} in a full batch, and of {} in a last, smaller one. Let model_fn sum what has one "
      "size for batches of all sizes, such as a sum over the samples, and as often in each",
      index + 1, text_of(full, index), text_of(small, index)));
}

}  // namespace mox::internal
