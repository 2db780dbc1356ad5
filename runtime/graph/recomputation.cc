#include "runtime/graph/recomputation.h"

#include <any>
#include <map>
#include <utility>

#include "runtime/graph/internal/tensor_key.h"

namespace mox {
namespace {

// One sweep over a graph.
class Recomputation {
 public:
  Recomputation(const Graph& graph, const RewriteView& view) {
    for (const auto& node : graph.nodes())
      if (view.is_needed(*node))
        for (const Tensor& input : node->inputs)
          if (node->traits.recomputed_stretch == input.node()->traits.recomputed_stretch)
            ++uses_inside_[key_of(input)];
  }

  std::optional<std::vector<Tensor>> apply(const Node& node, const RewriteView& view) {
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
    Node& copy = view.target().copy_node(node, inputs);
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
      Node& copy = view.target().copy_node(*tensor.node(), inputs);
      known = copies_.emplace(tensor.node(), &copy).first;
    }
    return known->second->output(tensor.index());
  }

  std::map<int64_t, int> uses_inside_;   // by nodes of the tensor's own stretch
  std::map<const Node*, Node*> copies_;  // in the new graph
};

}  // namespace

NamedRule recomputation_rule() {
  return {"computed again in the backward pass",
          [](const Node& node, const RewriteView& view) {
            if (!view.memory().has_value()) view.memory().emplace<Recomputation>(*node.graph, view);
            return std::any_cast<Recomputation&>(view.memory()).apply(node, view);
          },
          [](const Node& node) { return node.traits.recomputed_stretch != 0; }};
}

}  // namespace mox
