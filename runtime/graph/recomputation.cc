#include "runtime/graph/recomputation.h"

#include <map>
#include <memory>
#include <utility>

#include "runtime/graph/internal/tensor_key.h"

namespace mox {
namespace {

// One sweep over a graph.
class Recomputation {
 public:
  explicit Recomputation(const Graph& graph) : graph_(&graph) {
    for (const auto& node : graph.nodes())
      for (const Tensor& input : node->inputs)
        if (node->traits.recomputed_stretch == input.node()->traits.recomputed_stretch)
          ++uses_inside_[key_of(input)];
  }

  // Whether `node` comes behind all that this sweep has seen.
  bool continues_with(const Node& node) const { return node.graph == graph_ && node.id > last_; }

  std::optional<std::vector<Tensor>> apply(const Node& node, const RewriteView& view) {
    last_ = node.id;
    if (!node.traits.is_gradient || node.traits.recomputed_stretch == 0) return std::nullopt;
    bool any = false;
    std::vector<Tensor> inputs;
    for (const Tensor& input : node.inputs) {
      const bool again =
          input.node()->traits.recomputed_stretch == node.traits.recomputed_stretch && !is_kept(input, view);
      inputs.push_back(again ? computed_again(input, view) : view.mapped(input));
      any |= again;
    }
    if (!any) return std::nullopt;
    Node& copy = view.target().copy_node(node, std::move(inputs));
    return outputs_of(copy);
  }

 private:
  static std::vector<Tensor> outputs_of(Node& node) {
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < node.outputs.size(); ++i) outputs.push_back(node.output(i));
    return outputs;
  }

  bool is_kept(const Tensor& tensor, const RewriteView& view) const {
    const Node& node = *tensor.node();
    if (node.traits.is_gradient || node.traits.recomputed_stretch == 0 || node.op->kind != Op::Kind::kCompute)
      return true;
    const auto inside = uses_inside_.find(key_of(tensor));
    return tensor.type().bytes() <= kSmallestRecomputedBytes || inside == uses_inside_.end() ||
           view.uses(tensor) > inside->second;
  }

  Tensor computed_again(const Tensor& tensor, const RewriteView& view) {
    auto known = copies_.find(tensor.node());
    if (known == copies_.end()) {
      std::vector<Tensor> inputs;
      for (const Tensor& input : tensor.node()->inputs)
        inputs.push_back(is_kept(input, view) ? view.mapped(input) : computed_again(input, view));
      Node& copy = view.target().copy_node(*tensor.node(), std::move(inputs));
      known = copies_.emplace(tensor.node(), &copy).first;
    }
    return known->second->output(tensor.index());
  }

  const Graph* graph_;
  int last_ = -1;
  std::map<int64_t, int> uses_inside_;   // by nodes of the tensor's own stretch
  std::map<const Node*, Node*> copies_;  // in the new graph
};

}  // namespace

NamedRule recomputation_rule() {
  const auto sweep = std::make_shared<std::optional<Recomputation>>();
  return {"computed again in the backward pass",
          [sweep](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
            if (!*sweep || !(*sweep)->continues_with(node)) sweep->emplace(*node.graph);
            return (*sweep)->apply(node, view);
          }};
}

}  // namespace mox
