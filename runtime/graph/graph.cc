#include "runtime/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/interruption/interruption.h"

namespace mox {
namespace {

struct BuildContext {
  Graph* graph = nullptr;
  std::string scope;
  NodeTraits traits;
  std::optional<SourceLocation> where;
};

BuildContext& context() {
  thread_local BuildContext instance;
  return instance;
}

std::vector<TensorType> type_attribute(const OpCall& call) {
  return {{call.attributes.get<DType>("dtype"), Shape(call.attributes.get<std::vector<int64_t>>("shape"))}};
}

const Op kInput{.name = "input", .kind = Op::Kind::kInput, .infer = type_attribute};
const Op kConstant{.name = "constant", .kind = Op::Kind::kConstant, .infer = [](const OpCall& call) {
                     return std::vector<TensorType>{call.attributes.get<Array>("value").type()};
                   }};
const Op kVariable{.name = "variable", .kind = Op::Kind::kVariable, .infer = type_attribute};

Attributes with_type(const TensorType& type, std::pair<std::string, Attribute> extra) {
  return {{"dtype", type.dtype},
          {"shape", std::vector<int64_t>(type.shape.begin(), type.shape.end())},
          std::move(extra)};
}

}  // namespace

Graph::Graph() = default;
Graph::~Graph() = default;

Node& Graph::add_node(const Op& op, std::vector<Tensor> inputs, Attributes attributes, SourceLocation where) {
  internal::throw_if_interrupted();
  if (context().where) where = *context().where;
  const std::string wanted =
      context().graph == this ? context().scope + std::string(op.name) : std::string(op.name);
  const OpCall call{op, wanted, inputs, attributes, where};
  for (const Tensor& input : inputs) {
    if (!input.defined())
      throw InvalidArgument(
          fmt::format("{} '{}' at {}: an input is an undefined tensor", op.name, wanted, to_string(where)));
    if (input.node()->graph != this)
      call.fail("inputs of one graph (was a tensor kept from an earlier model_fn call?)");
  }
  auto node = std::make_unique<Node>();
  node->outputs = op.infer(call);
  node->graph = this;
  node->id = static_cast<int>(nodes_.size());
  node->op = &op;
  node->name = take_name(wanted);
  node->attributes = std::move(attributes);
  node->inputs = std::move(inputs);
  node->traits = context().traits;
  node->where = where;
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

Node& Graph::copy_node(const Node& node, std::span<const Tensor> inputs) {
  internal::throw_if_interrupted();
  auto copy = reused_count_ < reused_.size() ? std::move(reused_[reused_count_++]) : std::make_unique<Node>();
  copy->graph = this;
  copy->id = static_cast<int>(nodes_.size());
  copy->op = node.op;
  copy->name = take_name(node.name);
  copy->attributes = node.attributes;
  copy->inputs.assign(inputs.begin(), inputs.end());
  copy->outputs = node.outputs;
  copy->traits = node.traits;
  copy->where = node.where;
  nodes_.push_back(std::move(copy));
  Node& result = *nodes_.back();
  if (node.op == &kVariable) {
    const Graph& from = *node.graph;
    const auto& name = node.attributes.get<std::string>("variable");
    add_variable(result.output(), from.variable_specs_[from.variable_index_.find(name)->second]);
  }
  return result;
}

void Graph::reuse(std::vector<std::unique_ptr<Node>> nodes) {
  reused_ = std::move(nodes);
  reused_count_ = 0;
  if (!reused_.empty()) taken_names_.reserve(reused_.size());
}

Tensor Graph::constant(Array value, SourceLocation where) {
  return add_node(kConstant, {}, {{"value", std::move(value)}}, where).output();
}

Tensor Graph::input(int component, const TensorType& type, SourceLocation where) {
  for (const auto& node : nodes_) {
    if (node->op == &kInput && node->attributes.get<int64_t>("component") == component) {
      MOX_ASSERT(node->outputs[0] == type, "an input keeps its type");
      return node->output();
    }
  }
  return add_node(kInput, {}, with_type(type, {"component", int64_t{component}}), where).output();
}

Tensor Graph::add_variable(VariableSpec spec) {
  Node& node = add_node(kVariable, {}, with_type(spec.type, {"variable", spec.name}), spec.where);
  node.name = unique_name(spec.name);
  add_variable(node.output(), std::make_shared<const VariableSpec>(std::move(spec)));
  return node.output();
}

void Graph::add_variable(const Tensor& variable, std::shared_ptr<const VariableSpec> spec) {
  const bool is_new = variable_index_.try_emplace(spec->name, variables_.size()).second;
  MOX_ASSERT(is_new, "a variable is declared once");
  variables_.push_back(variable);
  variable_specs_.push_back(std::move(spec));
}

Tensor Graph::find_variable(std::string_view name) const {
  auto found = variable_index_.find(name);
  return found == variable_index_.end() ? Tensor() : variables_[found->second];
}

const VariableSpec& Graph::spec(const Tensor& variable) const {
  MOX_ASSERT(variable.defined() && variable.node()->graph == this && variable.node()->op == &kVariable,
             "the tensor is a variable of this graph");
  const auto& name = variable.node()->attributes.get<std::string>("variable");
  return *variable_specs_[variable_index_.find(name)->second];
}

void Graph::set_after_step_value(AfterStepValue after) {
  const auto [known, is_new] =
      after_step_index_.try_emplace(after.variable.node(), after_step_values_.size());
  if (is_new)
    after_step_values_.push_back(after);
  else
    after_step_values_[known->second].value = after.value;
}

Tensor Graph::find_after_step_value(const Tensor& variable) const {
  const auto found = after_step_index_.find(variable.node());
  return found == after_step_index_.end() ? Tensor() : after_step_values_[found->second].value;
}

const std::vector<Tensor>& Graph::collection(const std::string& key) const {
  static const std::vector<Tensor> empty;
  auto found = collections_.find(key);
  return found == collections_.end() ? empty : found->second;
}

bool Graph::has_variable_in(std::string_view scope) const {
  if (variable_index_.contains(scope)) return true;
  const std::string inside = std::string(scope) + '/';
  const auto first = variable_index_.lower_bound(inside);
  return first != variable_index_.end() && first->first.starts_with(inside);
}

std::string Graph::free_scope(std::string_view wanted) {
  int& number = first_free_numbers_.try_emplace(std::string(wanted), 0).first->second;
  for (;; ++number) {
    std::string candidate = number == 0 ? std::string(wanted) : fmt::format("{}_{}", wanted, number);
    if (!has_variable_in(candidate)) return candidate;
  }
}

bool Graph::is_in_counted_scope(std::string_view variable) const {
  for (size_t slash = variable.find('/'); slash != std::string_view::npos;
       slash = variable.find('/', slash + 1)) {
    const std::string_view scope = variable.substr(0, slash);
    if (first_free_numbers_.contains(scope)) return true;
    const size_t end = scope.find_last_not_of("0123456789");  // of `wanted_1`
    if (end != std::string_view::npos && end + 1 < scope.size() && scope[end] == '_' &&
        first_free_numbers_.contains(scope.substr(0, end)))
      return true;
  }
  return false;
}

std::string Graph::unique_name(std::string_view wanted) { return std::string(take_name(wanted)); }

std::string_view Graph::take_name(std::string_view wanted) {
  const auto kept = [this](std::string_view name) {
    char* const text = static_cast<char*>(names_.allocate(name.size(), 1));
    std::ranges::copy(name, text);
    return std::string_view(text, name.size());
  };
  const auto entry = taken_names_.find(wanted);
  if (entry == taken_names_.end()) return taken_names_.emplace(kept(wanted), 0).first->first;
  int& last = entry->second;  // stays where it is
  for (;;) {
    const std::string candidate = fmt::format("{}_{}", wanted, ++last);
    if (!taken_names_.contains(candidate)) return taken_names_.emplace(kept(candidate), 0).first->first;
  }
}

GraphScope::GraphScope(Graph& graph) : previous_(context().graph), previous_scope_(context().scope) {
  context().graph = &graph;
  context().scope.clear();
}
GraphScope::~GraphScope() {
  context().graph = previous_;
  context().scope = previous_scope_;
}

Graph& current_graph(std::string_view what) {
  if (!context().graph)
    throw FailedPrecondition(fmt::format(
        "{} was called outside of a model function: no graph is being built on this thread", what));
  return *context().graph;
}

NameScope::NameScope(std::string_view name) : previous_length_(context().scope.size()) {
  context().scope += name;
  context().scope += '/';
}
NameScope::~NameScope() { context().scope.resize(previous_length_); }
const std::string& current_name_scope() { return context().scope; }

TraitsScope::TraitsScope(const NodeTraits& traits) : previous_(context().traits) {
  context().traits = traits;
}
TraitsScope::~TraitsScope() { context().traits = previous_; }
const NodeTraits& current_traits() { return context().traits; }

LocationScope::LocationScope(SourceLocation where) : previous_(context().where) { context().where = where; }
LocationScope::~LocationScope() { context().where = previous_; }

}  // namespace mox
