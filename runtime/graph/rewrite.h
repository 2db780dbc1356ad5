// Graph rewriting: how fusions are written.
//
// A rewrite sweeps once over a graph in node order and builds a new graph. For each node a rule may answer
// with replacement tensors, built in the new graph; otherwise the node is copied. A rule looks backwards
// through the old graph (who made this input, how many uses has it) and matches at the last node of its
// pattern: a "conv2d, bias_add, relu" rule fires at the relu. Nodes that nobody uses any more are dropped
// afterwards. Rules live with the ops they know (ops/), the sweep knows no op.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/graph/graph.h"

namespace mox {

class RewriteView {
 public:
  // Old graph: the number of places that use this output of an old node (outputs of the whole graph count).
  int uses(const Tensor& old) const;
  // Old graph: the nodes that read it, in their order, a node once for each place where it does.
  std::span<const Node* const> readers(const Tensor& old) const;
  // Old to new: where an old tensor of an earlier node lives in the new graph.
  Tensor mapped(const Tensor& old) const;
  // The same as a function.
  auto mapping() const {
    return [this](const Tensor& old) { return mapped(old); };
  }
  // New graph: the same question as `uses`, asked of the old tensor that `mapped` turned into `fresh`; a
  // tensor the sweep made that stands for no old tensor has no recorded uses (0).
  int uses_of_mapped(const Tensor& fresh) const;
  // From here on the old tensor, of an earlier node, lives elsewhere in the new graph: for values that a node
  // computes besides what it replaces. What was built from the former one stays.
  void redirect(const Tensor& old, const Tensor& fresh) const;
  Graph& target() const { return *target_; }

 private:
  friend class GraphRewriter;
  struct Readers {
    std::vector<int64_t> keys;  // of what is read, ascending
    std::vector<const Node*> nodes;
  };
  std::unordered_map<int64_t, int> uses_;
  mutable std::optional<Readers> readers_;  // once a rule has asked
  const Graph* source_ = nullptr;
  mutable std::unordered_map<int64_t, Tensor> mapping_;  // which rules may change, by redirect alone
  mutable std::unordered_map<int64_t, int> fresh_uses_;
  Graph* target_ = nullptr;
};

// The replacement for every output of `node` (an old node), or nothing to leave it as it is.
using RewriteRule =
    std::function<std::optional<std::vector<Tensor>>(const Node& node, const RewriteView& view)>;

struct NamedRule {
  std::string name;  // for the printed plan
  RewriteRule rule;
};

// A graph that belongs to a compilation, with the tensors that must survive.
class GraphRewriter {
 public:
  // Copies what `outputs` need from `source` (pruning the rest).
  GraphRewriter(const Graph& source, std::vector<Tensor> outputs);

  // One sweep with one rule, then a prune. Returns how many times the rule fired.
  int apply(const RewriteRule& rule);

  Graph& graph() { return *graph_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }  // same order as given to the constructor
  std::unique_ptr<Graph> release() { return std::move(graph_); }

 private:
  std::unique_ptr<Graph> graph_;
  std::vector<Tensor> outputs_;
};

}  // namespace mox
