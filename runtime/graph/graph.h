// Graph: the nodes that model_fn builds, with the variables it asked for and the collections it filled.
//
// Append-only: a node's inputs exist before it, so the node order is a topological order. Not thread-safe;
// one thread builds it, then it may be read by many.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/node.h"
#include "runtime/graph/op.h"
#include "runtime/graph/variable.h"

namespace mox {

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Node& add_node(const Op& op, std::vector<Tensor> inputs, Attributes attributes, SourceLocation where);
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

  // A copy of a node of another graph, with `inputs` of this one; keeps name, attributes, types and location.
  // Copying a variable declares it here too.
  Node& copy_node(const Node& node, std::span<const Tensor> inputs);
  Node& copy_node(const Node& node, std::initializer_list<Tensor> inputs) {
    return copy_node(node, std::span(inputs.begin(), inputs.size()));
  }
  // Copies are made in these nodes, of a graph that is done with, as long as there are some: their texts and
  // lists have memory already.
  void reuse(std::vector<std::unique_ptr<Node>> nodes);
  // All nodes; the graph is done with.
  std::vector<std::unique_ptr<Node>> take_nodes() { return std::move(nodes_); }

  // A value that is part of the graph.
  Tensor constant(Array value, SourceLocation where);

  // A component of the batch. The same component asked for twice is the same node; `type` must agree.
  Tensor input(int component, const TensorType& type, SourceLocation where);

  // Declares a variable; the name must be new (layers above decide about reuse).
  Tensor add_variable(VariableSpec spec);
  // The variable of that exact name, or undefined.
  Tensor find_variable(std::string_view name) const;
  const VariableSpec& spec(const Tensor& variable) const;  // asserts that it is a variable of this graph
  const std::vector<Tensor>& variables() const { return variables_; }  // in the order of their declaration

  // Replaces the variable's earlier one, if it has one.
  void set_after_step_value(AfterStepValue value);
  Tensor find_after_step_value(const Tensor& variable) const;  // its value, or undefined
  const std::vector<AfterStepValue>& after_step_values() const { return after_step_values_; }

  void add_to_collection(const std::string& key, const Tensor& tensor) {
    collections_[key].push_back(tensor);
  }
  const std::vector<Tensor>& collection(const std::string& key) const;  // empty if nobody added to it

  // A number for NodeTraits::recomputed_stretch that this graph has not given yet.
  int new_stretch() { return ++stretches_; }

  // A name that no node of this graph has: `wanted`, or `wanted_1`, `wanted_2`, ...
  std::string unique_name(std::string_view wanted);
  // A scope in which no variable of this graph lies: `wanted`, or `wanted_1`, `wanted_2`, ..., the first of
  // them. Does not take it: a variable declared in it does.
  std::string free_scope(std::string_view wanted);
  // Whether a variable of that name lies in a scope that free_scope has given: its number is that of the
  // calls before it, which another graph of the same model may not have.
  bool is_in_counted_scope(std::string_view variable) const;

 private:
  bool has_variable_in(std::string_view scope) const;
  void add_variable(const Tensor& variable, std::shared_ptr<const VariableSpec> spec);
  std::string_view take_name(std::string_view wanted);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> reused_;  // of which so many are in use:
  size_t reused_count_ = 0;
  std::pmr::monotonic_buffer_resource names_;  // of the texts and the table of what is taken, which only grow
  std::pmr::unordered_map<std::string_view, int> taken_names_{&names_};
  std::vector<Tensor> variables_;
  std::vector<std::shared_ptr<const VariableSpec>> variable_specs_;  // shared with the copies of this graph
  std::map<std::string_view, size_t, std::less<>> variable_index_;   // by the specs' names
  // For a scope that was asked for: all numbers below are taken, and stay so, since variables stay.
  std::map<std::string, int, std::less<>> first_free_numbers_;
  std::vector<AfterStepValue> after_step_values_;
  std::unordered_map<const Node*, size_t> after_step_index_;  // by the variable's node
  std::map<std::string, std::vector<Tensor>> collections_;
  int stretches_ = 0;
};

// While alive, ops without inputs and get_variable on this thread go to `graph`. Nests; the engine holds one
// while it calls model_fn. (The thread's current graph is the only hidden context there is.)
class GraphScope {
 public:
  explicit GraphScope(Graph& graph);
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;

 private:
  Graph* previous_;
  std::string previous_scope_;
};

// The graph that is being built on this thread. Throws FailedPrecondition outside of a
// GraphScope, naming `what`.
Graph& current_graph(std::string_view what);

// While alive, names of new nodes on this thread start with "<name>/" after the scopes already open.
class NameScope {
 public:
  explicit NameScope(std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  size_t previous_length_;
};
const std::string& current_name_scope();  // "" or "a/b/"

// While alive, new nodes on this thread have these traits.
class TraitsScope {
 public:
  explicit TraitsScope(const NodeTraits& traits);
  ~TraitsScope();
  TraitsScope(const TraitsScope&) = delete;
  TraitsScope& operator=(const TraitsScope&) = delete;

 private:
  NodeTraits previous_;
};
const NodeTraits& current_traits();

// While alive, new nodes on this thread carry `where`: gradients point at the forward op's line, layers at
// their caller's.
class LocationScope {
 public:
  explicit LocationScope(SourceLocation where);
  ~LocationScope();
  LocationScope(const LocationScope&) = delete;
  LocationScope& operator=(const LocationScope&) = delete;

 private:
  std::optional<SourceLocation> previous_;
};

}  // namespace mox
