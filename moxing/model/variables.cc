#include "moxing/model/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "moxing/model/penalised_variables.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox {
namespace {

// Where the model function is: the scopes that are open on this thread.
struct ScopePosition {
  std::string prefix;  // "" or "a/b/"
  Reuse reuse = Reuse::kForbid;
};

ScopePosition& position() {
  thread_local ScopePosition instance;
  return instance;
}

void check_scope_name(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.back() == '/')
    throw InvalidArgument(fmt::format(
        "'{}' is not a name for a variable or a scope: it must not be empty, nor begin or end with '/'",
        name));
}

bool is_variable(const Tensor& tensor) {
  return tensor.defined() && tensor.node()->op->kind == Op::Kind::kVariable;
}

void require_of_graph(const Graph& graph, const Tensor& tensor, std::string_view what) {
  if (tensor.node()->graph != &graph)
    throw InvalidArgument(fmt::format(
        "{} got {}, a tensor of another graph; model_fn must keep no tensor from one call to the next", what,
        to_string(tensor)));
}

}  // namespace

Regularizer l2_regularizer(float scale) {
  return [scale](const Tensor& variable) { return l2_loss(variable) * scale; };
}

namespace {

struct L1Penalty {
  float scale;
  Tensor operator()(const Tensor& variable) const { return reduce_sum(abs(variable)) * scale; }
};

}  // namespace

Regularizer l1_regularizer(float scale) { return L1Penalty{scale}; }

Tensor get_variable(std::string_view name, const Shape& shape, const Initializer& initializer,
                    const VariableOptions& options, SourceLocation where) {
  Graph& graph = current_graph("get_variable");
  check_scope_name(name);
  const std::string full_name = position().prefix + std::string(name);
  const Reuse reuse = position().reuse;
  if (const Tensor existing = graph.find_variable(full_name); existing.defined()) {
    const SourceLocation first = graph.spec(existing).where;
    if (reuse == Reuse::kForbid)
      throw InvalidArgument(
          fmt::format("the variable '{}' asked for at {} exists already, made at {}; open its scope "
                      "with Reuse::kRequire or Reuse::kAuto to share it, or choose another name",
                      full_name, to_string(where), to_string(first)));
    if (existing.shape() != shape)
      throw InvalidArgument(fmt::format(
          "the variable '{}' asked for at {} with shape {} exists with shape {}, made at {}", full_name,
          to_string(where), to_string(shape), to_string(existing.shape()), to_string(first)));
    return existing;
  }
  if (reuse == Reuse::kRequire)
    throw NotFound(
        fmt::format("the variable '{}' asked for at {} does not exist, and its scope requires reuse",
                    full_name, to_string(where)));
  VariableSpec spec;
  spec.name = full_name;
  spec.type = {DType::kFloat32, shape};
  spec.trainable = options.trainable;
  spec.initial_value = [initializer, shape, full_name](uint64_t seed) {
    return initializer(shape, seed, full_name);
  };
  spec.where = where;
  const Tensor variable = graph.add_variable(std::move(spec));
  if (options.regularizer) {
    LocationScope location(where);
    Tensor penalty = options.regularizer(variable);
    // A node of its own, by which the engine can tell whether a loss holds the penalty already.
    if (penalty.defined() && penalty.node()->id <= variable.node()->id) penalty = penalty * 1.0f;
    add_to_collection("regularization_losses", penalty);
    if (!options.regularizer.target<L1Penalty>()) add_to_collection(internal::kPenalisedVariables, variable);
  }
  return variable;
}

struct VarScope::State {
  ScopePosition previous;
  std::optional<NameScope> names;
  TraitsScope traits;
  explicit State(const NodeTraits& inside) : previous(position()), traits(inside) {}
};

namespace {

NodeTraits traits_of_scope(std::string_view name, const VarScopeOptions& options) {
  Graph& graph = current_graph("var_scope");
  if (options.force_dtype && *options.force_dtype != DType::kFloat32 &&
      *options.force_dtype != DType::kBFloat16)
    throw InvalidArgument(fmt::format("var_scope({}): force_dtype must be float32 or bfloat16, got {}",
                                      name.empty() ? "" : fmt::format("'{}'", name),
                                      to_string(*options.force_dtype)));
  NodeTraits traits = current_traits();
  if (options.force_dtype) traits.compute_dtype = options.force_dtype;
  if (options.recompute && traits.recomputed_stretch == 0) traits.recomputed_stretch = graph.new_stretch();
  return traits;
}

}  // namespace

VarScope::VarScope(const VarScopeOptions& options)
    : state_(std::make_unique<State>(traits_of_scope("", options))) {
  if (options.reuse != Reuse::kInherit) position().reuse = options.reuse;
}

VarScope::VarScope(std::string_view name, const VarScopeOptions& options) {
  current_graph("var_scope");
  check_scope_name(name);
  state_ = std::make_unique<State>(traits_of_scope(name, options));
  state_->names.emplace(name);
  position().prefix += std::string(name) + '/';
  if (options.reuse != Reuse::kInherit) position().reuse = options.reuse;
}
VarScope::~VarScope() { position() = state_->previous; }

VarScope var_scope(std::string_view name, Reuse reuse) { return {name, {.reuse = reuse}}; }
VarScope var_scope(std::string_view name, const VarScopeOptions& options) { return {name, options}; }
VarScope var_scope(const VarScopeOptions& options) { return VarScope(options); }

bool is_in_scope(std::string_view name, std::string_view scope) {
  while (!scope.empty() && scope.back() == '/') scope.remove_suffix(1);
  return scope.empty() || name == scope ||
         (name.size() > scope.size() && name.starts_with(scope) && name[scope.size()] == '/');
}

std::vector<Tensor> get_collection(const std::string& key, std::string_view scope) {
  const Graph& graph = current_graph("get_collection");
  std::vector<Tensor> found = graph.collection(key);
  const bool trainable_only = key == "trainable_variables";
  if (trainable_only || key == "variables") {
    found.clear();
    for (const Tensor& variable : graph.variables())
      if (!trainable_only || graph.spec(variable).trainable) found.push_back(variable);
  }
  // The node of a variable may be called otherwise, if another node had the name before.
  auto name_of = [&](const Tensor& tensor) {
    return is_variable(tensor) ? graph.spec(tensor).name : tensor.name();
  };
  std::erase_if(found, [&](const Tensor& tensor) { return !is_in_scope(name_of(tensor), scope); });
  return found;
}

void add_to_collection(const std::string& key, const Tensor& tensor) {
  if (!tensor.defined())
    throw InvalidArgument(fmt::format("an undefined tensor was added to the collection '{}'", key));
  if (key == "variables" || key == "trainable_variables")
    throw InvalidArgument(
        fmt::format("the collection '{}' is kept by get_variable; use a key of your own", key));
  Graph& graph = current_graph("add_to_collection");
  require_of_graph(graph, tensor, "add_to_collection");
  graph.add_to_collection(key, tensor);
}

void update_after_step(const Tensor& variable, const Tensor& value, SourceLocation where) {
  if (!is_variable(variable))
    throw InvalidArgument(fmt::format("update_after_step at {} needs a variable, got {}", to_string(where),
                                      to_string(variable)));
  if (!value.defined() || value.type() != variable.type())
    throw InvalidArgument(fmt::format("update_after_step at {}: '{}' is {} and cannot take the value of {}",
                                      to_string(where), variable.name(), to_string(variable.type()),
                                      to_string(value)));
  Graph& graph = current_graph("update_after_step");
  require_of_graph(graph, variable, "update_after_step");
  require_of_graph(graph, value, "update_after_step");
  if (const Tensor earlier = graph.find_after_step_value(variable); earlier.defined())
    throw InvalidArgument(fmt::format(
        "update_after_step at {}: '{}' already takes the value of {} after the step; make one value of both",
        to_string(where), graph.spec(variable).name, to_string(earlier)));
  graph.set_after_step_value({variable, value});
}

}  // namespace mox
