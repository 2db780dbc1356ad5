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

void RewriteView::Places::extend_to(const Graph& graph) {
  for (size_t id = first_.size(); id < graph.nodes().size(); ++id) {
    first_.push_back(count_);
    count_ += graph.nodes()[id]->outputs.size();
  }
}

RewriteView::RewriteView(const Graph& source, std::vector<bool> needed, const std::vector<Tensor>& outputs,
                         Graph& target)
    : source_(&source), target_(&target), needed_(std::move(needed)) {
  places_.extend_to(source);
  uses_.resize(places_.count());
  mapping_.resize(places_.count());
  for (const auto& node : source.nodes())
    if (needed_[node->id])
      for (const Tensor& input : node->inputs) ++uses_[places_.of(input)];
  for (const Tensor& output : outputs) ++uses_[places_.of(output)];
}

int RewriteView::uses(const Tensor& old) const { return uses_[places_.of(old)]; }

std::span<const Node* const> RewriteView::readers(const Tensor& old) const {
  MOX_ASSERT(old.node()->graph == source_, "a rule asks for the readers of old tensors");
  if (!readers_) {
    std::vector<std::pair<int64_t, const Node*>> all;
    for (const auto& node : source_->nodes())
      if (needed_[node->id])
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
  const Tensor& fresh = mapping_[places_.of(old)];
  MOX_ASSERT(fresh.defined(), "a rule maps tensors of nodes that the sweep has passed");
  return fresh;
}

int RewriteView::uses_of_mapped(const Tensor& fresh) const {
  return fresh_places_.has(fresh) ? fresh_uses_[fresh_places_.of(fresh)] : 0;
}

int& RewriteView::count_of_mapped(const Tensor& fresh) const {
  if (!fresh_places_.has(fresh)) {
    fresh_places_.extend_to(*target_);
    fresh_uses_.resize(fresh_places_.count());
  }
  return fresh_uses_[fresh_places_.of(fresh)];
}

void RewriteView::redirect(const Tensor& old, const Tensor& fresh) const {
  const Tensor former = mapped(old);
  MOX_ASSERT(fresh.node()->graph == target_ && fresh.type() == old.type(),
             "a rewrite keeps the type of what it replaces");
  mapping_[places_.of(old)] = fresh;
  count_of_mapped(former) -= uses(old);
  count_of_mapped(fresh) += uses(old);
}

GraphRewriter::GraphRewriter(const Graph& source, std::vector<Tensor> outputs)
    : source_(&source), outputs_(std::move(outputs)) {
  for (const Tensor& output : outputs_)
    MOX_ASSERT(output.defined() && output.node()->graph == &source,
               "outputs belong to the graph that is compiled");
}

int GraphRewriter::apply(const RewriteRule& rule, const NodePredicate& needs) {
  std::vector<bool> needed = needed_nodes(*source_, outputs_);
  if (needs && std::ranges::none_of(source_->nodes(),
                                    [&](const auto& node) { return needed[node->id] && needs(*node); }))
    return 0;
  auto fresh = std::make_unique<Graph>();
  fresh->reuse(std::move(spare_));
  RewriteView view(*source_, std::move(needed), outputs_, *fresh);
  int fired = 0;
  std::vector<Tensor> inputs;
  for (const auto& node : source_->nodes()) {
    if (!view.is_needed(*node)) continue;
    const auto put = [&](int i, const Tensor& result) {
      MOX_ASSERT(result.node()->graph == fresh.get() && result.type() == node->outputs[i],
                 "a rewrite keeps the type of what it replaces");
      const Tensor output(node.get(), i);
      view.mapping_[view.places_.of(output)] = result;
      view.count_of_mapped(result) += view.uses(output);
    };
    const int outputs = static_cast<int>(node->outputs.size());
    LocationScope where(node->where);
    TraitsScope traits(node->traits);
    if (const auto replacement = rule(*node, view)) {
      ++fired;
      MOX_ASSERT(std::ssize(*replacement) == outputs, "a rewrite replaces every output");
      for (int i = 0; i < outputs; ++i) put(i, (*replacement)[i]);
    } else {
      inputs.clear();
      for (const Tensor& input : node->inputs) inputs.push_back(view.mapped(input));
      Node& copy = fresh->copy_node(*node, inputs);
      for (int i = 0; i < outputs; ++i) put(i, Tensor(&copy, i));
    }
  }
  for (Tensor& output : outputs_) output = view.mapped(output);
  fresh->reuse({});
  if (graph_) spare_ = graph_->take_nodes();
  graph_ = std::move(fresh);
  source_ = graph_.get();
  return fired;
}

void GraphRewriter::prune() {
  if (source_ == graph_.get() && std::ranges::all_of(needed_nodes(*graph_, outputs_), std::identity()))
    return;
  apply([](const Node&, const RewriteView&) { return std::nullopt; });
}

Graph& GraphRewriter::graph() {
  prune();
  return *graph_;
}

const std::vector<Tensor>& GraphRewriter::outputs() {
  prune();
  return outputs_;
}

std::unique_ptr<Graph> GraphRewriter::release() {
  prune();
  spare_.clear();
  return std::move(graph_);
}

}  // namespace mox
