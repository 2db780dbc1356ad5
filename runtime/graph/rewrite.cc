#include "runtime/graph/rewrite.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/graph/internal/tensor_key.h"

namespace mox {
namespace {

std::vector<bool> needed_nodes(const Graph& graph, const std::vector<Tensor>& outputs) {
  std::vector<bool> needed(graph.nodes().size(), false);
  for (const Tensor& output : outputs) needed[output.node()->id] = true;
  for (size_t id = graph.nodes().size(); id-- > 0;)
    if (needed[id])
      for (const Tensor& input : graph.nodes()[id]->inputs) needed[input.node()->id] = true;
  return needed;
}

}  // namespace

int RewriteView::uses(const Tensor& old) const {
  auto found = uses_.find(key_of(old));
  return found == uses_.end() ? 0 : found->second;
}

std::span<const Node* const> RewriteView::readers(const Tensor& old) const {
  MOX_ASSERT(old.node()->graph == source_, "a rule asks for the readers of old tensors");
  if (!readers_) {
    std::vector<std::pair<int64_t, const Node*>> all;
    for (const auto& node : source_->nodes())
      for (const Tensor& input : node->inputs) all.emplace_back(key_of(input), node.get());
    std::ranges::stable_sort(all, {}, [](const auto& read) { return read.first; });
    readers_.emplace();
    for (const auto& [key, node] : all) {
      readers_->keys.push_back(key);
      readers_->nodes.push_back(node);
    }
  }
  const auto& keys = readers_->keys;
  const auto [first, last] = std::equal_range(keys.begin(), keys.end(), key_of(old));
  return {std::next(readers_->nodes.begin(), first - keys.begin()),
          std::next(readers_->nodes.begin(), last - keys.begin())};
}

Tensor RewriteView::mapped(const Tensor& old) const {
  auto found = mapping_.find(key_of(old));
  MOX_ASSERT(found != mapping_.end(), "a rule maps tensors of nodes that the sweep has passed");
  return found->second;
}
int RewriteView::uses_of_mapped(const Tensor& fresh) const {
  auto found = fresh_uses_.find(key_of(fresh));
  return found == fresh_uses_.end() ? 0 : found->second;
}

void RewriteView::redirect(const Tensor& old, const Tensor& fresh) const {
  const Tensor former = mapped(old);
  MOX_ASSERT(fresh.node()->graph == target_ && fresh.type() == old.type(),
             "a rewrite keeps the type of what it replaces");
  mapping_[key_of(old)] = fresh;
  fresh_uses_[key_of(former)] -= uses(old);
  fresh_uses_[key_of(fresh)] += uses(old);
}

GraphRewriter::GraphRewriter(const Graph& source, std::vector<Tensor> outputs)
    : outputs_(std::move(outputs)) {
  for (const Tensor& output : outputs_)
    MOX_ASSERT(output.defined() && output.node()->graph == &source,
               "outputs belong to the graph that is compiled");
  graph_ = std::make_unique<Graph>();
  const std::vector<bool> needed = needed_nodes(source, outputs_);
  std::unordered_map<int64_t, Tensor> mapping;
  for (const auto& node : source.nodes()) {
    if (!needed[node->id]) continue;
    std::vector<Tensor> inputs;
    for (const Tensor& input : node->inputs) inputs.push_back(mapping.at(key_of(input)));
    Node& copy = graph_->copy_node(*node, std::move(inputs));
    for (size_t i = 0; i < node->outputs.size(); ++i)
      mapping[key_of(Tensor(node.get(), i))] = Tensor(&copy, i);
  }
  for (Tensor& output : outputs_) output = mapping.at(key_of(output));
}

int GraphRewriter::apply(const RewriteRule& rule) {
  const std::unique_ptr<Graph> old = std::move(graph_);
  const std::vector<bool> needed = needed_nodes(*old, outputs_);
  auto fresh = std::make_unique<Graph>();
  RewriteView view;
  view.target_ = fresh.get();
  view.source_ = old.get();
  for (const auto& node : old->nodes())
    if (needed[node->id])
      for (const Tensor& input : node->inputs) ++view.uses_[key_of(input)];
  for (const Tensor& output : outputs_) ++view.uses_[key_of(output)];

  int fired = 0;
  for (const auto& node : old->nodes()) {
    if (!needed[node->id]) continue;
    std::vector<Tensor> results;
    LocationScope where(node->where);
    TraitsScope traits(node->traits);
    if (auto replacement = rule(*node, view)) {
      ++fired;
      results = std::move(*replacement);
      MOX_ASSERT(results.size() == node->outputs.size(), "a rewrite replaces every output");
    } else {
      std::vector<Tensor> inputs;
      for (const Tensor& input : node->inputs) inputs.push_back(view.mapped(input));
      Node& copy = fresh->copy_node(*node, std::move(inputs));
      for (size_t i = 0; i < node->outputs.size(); ++i) results.push_back(Tensor(&copy, i));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      MOX_ASSERT(results[i].node()->graph == fresh.get() && results[i].type() == node->outputs[i],
                 "a rewrite keeps the type of what it replaces");
      const Tensor output(node.get(), i);
      view.mapping_[key_of(output)] = results[i];
      view.fresh_uses_[key_of(results[i])] += view.uses(output);
    }
  }
  for (Tensor& output : outputs_) output = view.mapped(output);
  GraphRewriter pruned(*fresh, outputs_);
  graph_ = std::move(pruned.graph_);
  outputs_ = std::move(pruned.outputs_);
  return fired;
}

}  // namespace mox
