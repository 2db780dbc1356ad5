// Graph rewriting: how fusions are written.
//
// A rewrite sweeps once over a graph in node order and builds a new graph. For each node a rule may answer
// with replacement tensors, built in the new graph; otherwise the node is copied. A rule looks backwards
// through the old graph (who made this input, how many uses has it) and matches at the last node of its
// pattern: a "conv2d, bias_add, relu" rule fires at the relu. Nodes that nobody uses any more are dropped
// afterwards. Rules live with the ops they know (ops/), the sweep knows no op.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
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
  // Old graph: whether the sweep comes by this node. It leaves out what nothing needs any more.
  bool is_needed(const Node& old) const { return needed_[old.id]; }
  // What the rule itself keeps from one node of this sweep to the next; empty at the first.
  std::any& memory() const { return memory_; }

 private:
  friend class GraphRewriter;
  // The outputs of all nodes of a graph, numbered in their order.
  class Places {
   public:
    void extend_to(const Graph& graph);
    size_t of(const Tensor& tensor) const { return first_[tensor.node()->id] + tensor.index(); }
    bool has(const Tensor& tensor) const { return static_cast<size_t>(tensor.node()->id) < first_.size(); }
    size_t count() const { return count_; }

   private:
    std::vector<size_t> first_;  // by node
    size_t count_ = 0;
  };
  struct Readers {
    std::vector<int64_t> keys;  // of what is read, ascending
    std::vector<const Node*> nodes;
  };
  RewriteView(const Graph& source, std::vector<bool> needed, const std::vector<Tensor>& outputs,
              Graph& target);
  // New graph: the count itself, of a tensor that may be newer than all that were counted.
  int& count_of_mapped(const Tensor& fresh) const;

  const Graph* source_;
  Graph* target_;
  std::vector<bool> needed_;  // by old node
  Places places_;
  mutable Places fresh_places_;
  std::vector<int> uses_;                   // by place
  mutable std::optional<Readers> readers_;  // once a rule has asked
  mutable std::vector<Tensor> mapping_;     // by place; rules may change it, by redirect alone
  mutable std::vector<int> fresh_uses_;     // by fresh place
  mutable std::any memory_;
};

// The replacement for every output of `node` (an old node), or nothing to leave it as it is.
using RewriteRule =
    std::function<std::optional<std::vector<Tensor>>(const Node& node, const RewriteView& view)>;

using NodePredicate = std::function<bool(const Node& node)>;

struct NamedRule {
  std::string name;  // for the printed plan
  RewriteRule rule;
  // If set: the rule can only fire in a graph that has such a node, and other graphs are not swept.
  NodePredicate needs = nullptr;
};

// A graph that belongs to a compilation, with the tensors that must survive.
class GraphRewriter {
 public:
  // Of `source`, which must live until the first sweep or the first question for the graph.
  GraphRewriter(const Graph& source, std::vector<Tensor> outputs);

  // One sweep with one rule, if the graph has a node that it `needs` (NamedRule). Returns how many times the
  // rule fired.
  int apply(const RewriteRule& rule, const NodePredicate& needs = nullptr);

  // What `outputs` need, and nothing else.
  Graph& graph();
  const std::vector<Tensor>& outputs();  // same order as given to the constructor
  std::unique_ptr<Graph> release();

 private:
  void prune();

  const Graph* source_;           // of the constructor, or graph_
  std::unique_ptr<Graph> graph_;  // may have nodes that nothing needs: the next sweep leaves them out
  std::vector<std::unique_ptr<Node>> spare_;  // of the graph before, for the next
  std::vector<Tensor> outputs_;
};

}  // namespace mox
