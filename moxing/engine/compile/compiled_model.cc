#include "moxing/engine/compile/compiled_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "moxing/engine/compile/internal/evaluated_values.h"
#include "moxing/engine/compile/internal/likely_mistakes.h"
#include "moxing/engine/compile/internal/regularized_loss.h"
#include "moxing/engine/compile/internal/spec_checks.h"
#include "moxing/model/variables.h"
#include "ops/fusion/default_rules.h"
#include "ops/gradients.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/nearest_name.h"
#include "runtime/refusals/out_of_memory.h"

namespace mox::internal {
namespace {

// Collects what a plan computes, by name, in the order of first mention.
class FetchList : public ModelBuild {
 public:
  FetchList(const Graph& graph, Tensor loss, const ModelSpec& spec)
      : graph_(graph), loss_(loss), spec_(spec) {}

  void fetch(const std::string& name, const Tensor& tensor) override {
    if (!tensor.defined())
      throw InvalidArgument(fmt::format("the value '{}' to fetch is an undefined tensor", name));
    if (tensor.node()->graph != &graph_)
      throw InvalidArgument(
          fmt::format("the value '{}' to fetch is '{}' (made at {}), a tensor of another graph: model_fn is "
                      "called once for each mode and batch size, and no tensor may be kept from one call to "
                      "the next. A hook finds its tensor anew in each begin: put it into a collection in "
                      "model_fn and take it with get_collection",
                      name, tensor.name(), to_string(tensor.where())));
    const auto [known, is_new] = places.emplace(name, names.size());
    if (is_new) {
      names.push_back(name);
      tensors.push_back(tensor);
    } else if (tensors[known->second] != tensor) {
      throw InvalidArgument(fmt::format("two tensors are to be fetched under the name '{}': {} and {}", name,
                                        to_string(tensors[known->second]), to_string(tensor)));
    }
  }
  const Tensor& loss() const override { return loss_; }
  std::vector<std::string> output_names() const override {
    std::vector<std::string> result;
    for (const auto& [name, tensor] : spec_.output_info) result.push_back(name);
    return result;
  }

  std::vector<std::string> names;
  std::map<std::string, size_t, std::less<>> places;  // of the names
  std::vector<Tensor> tensors;

 private:
  const Graph& graph_;
  Tensor loss_;
  const ModelSpec& spec_;
};

bool forces_bfloat16(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const auto& node) { return node->traits.compute_dtype == DType::kBFloat16; });
}

// A name that no variable of a model can have.
constexpr std::string_view kLossScaleVariable = "/loss_scale";

Tensor scaled(const Tensor& loss, Graph& graph) {
  LocationScope where(loss.where());
  VariableSpec spec;
  spec.name = kLossScaleVariable;
  spec.type = {DType::kFloat32, Shape{}};
  spec.trainable = false;
  spec.where = loss.where();
  return loss * graph.add_variable(std::move(spec));
}

bool is_in_one_of(const std::vector<std::string>& scopes, std::string_view name) {
  return scopes.empty() ||
         std::ranges::any_of(scopes, [&](const std::string& scope) { return is_in_scope(name, scope); });
}

// One that holds nothing to train is a slip of the pen: what it means would stay as it is, without a word.
void require_members_of_scopes(const std::vector<std::string>& scopes, const Graph& graph) {
  std::vector<std::string> trainable;
  for (const Tensor& variable : graph.variables())
    if (graph.spec(variable).trainable) trainable.push_back(graph.spec(variable).name);
  for (const std::string& scope : scopes)
    if (std::ranges::none_of(trainable, [&](const std::string& name) { return is_in_scope(name, scope); }))
      throw InvalidArgument(
          fmt::format("var_scopes has '{}', and none of the {} trainable variables ({}) is in that scope; "
                      "correct or remove it",
                      scope, trainable.size(), first_names(trainable)));
}

std::vector<GradientOutput> gradients_of(const Tensor& loss, const Graph& graph, const ModelSpec& spec,
                                         const TrainingFacts& training) {
  std::vector<Tensor> targets;
  if (training.check_trainable) {
    std::vector<std::pair<std::string, Shape>> trainable;
    for (const Tensor& variable : graph.variables())
      if (const VariableSpec& declared = graph.spec(variable); declared.trainable)
        trainable.emplace_back(declared.name, declared.type.shape);
    training.check_trainable(trainable);
  }
  require_members_of_scopes(spec.var_scopes, graph);
  for (const Tensor& variable : graph.variables()) {
    const VariableSpec& declared = graph.spec(variable);
    if (declared.trainable && is_in_one_of(spec.var_scopes, declared.name) &&
        !(training.is_frozen && training.is_frozen(declared.name, declared.type.shape)))
      targets.push_back(variable);
  }
  if (targets.empty())
    throw InvalidArgument(fmt::format(
        "nothing to train: the model has {} variable(s), none of them trainable{}{}",
        graph.variables().size(),
        spec.var_scopes.empty() ? ""
                                : fmt::format(" inside the var_scopes {}", fmt::join(spec.var_scopes, ", ")),
        training.is_frozen ? " and not frozen (freeze, a learning rate times 0)" : ""));
  const std::vector<Tensor> found = gradients(loss, targets);
  std::vector<GradientOutput> result;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (found[i].defined()) {
      result.push_back({targets[i], found[i]});
    } else {
      log_warning(
          fmt::format("the loss does not depend on the variable '{}' made at {}; it will not be trained",
                      graph.spec(targets[i]).name, to_string(graph.spec(targets[i]).where)));
    }
  }
  if (result.empty()) throw InvalidArgument("nothing to train: the loss depends on no trainable variable");
  // In the order in which the backward pass finishes them.
  std::ranges::stable_sort(result, {}, [](const GradientOutput& g) { return g.gradient.node()->id; });
  return result;
}

// The value is computed from the variable as it was before the step: it would undo what the optimizer does.
void refuse_after_step_values_of_trained(const std::vector<GradientOutput>& gradients, const Graph& graph) {
  std::map<const Node*, Tensor> values;
  for (const AfterStepValue& after : graph.after_step_values()) values[after.variable.node()] = after.value;
  for (const GradientOutput& gradient : gradients)
    if (const auto found = values.find(gradient.variable.node()); found != values.end()) {
      const Tensor& value = found->second;
      throw InvalidArgument(
          fmt::format("the variable '{}' made at {} is trained, and takes the value of '{}' made at {} after "
                      "each step: what the optimizer does to it would be lost. Make it with trainable = "
                      "false, leave it out of var_scopes, or change it in a hook (Session::set_variable)",
                      graph.spec(gradient.variable).name, to_string(graph.spec(gradient.variable).where),
                      value.name(), to_string(value.where())));
    }
}

// A team begins and ends each instruction together, which takes two to four microseconds. Where one thread
// computes an average instruction in about that time, one thread is faster: a perceptron for 20 columns makes
// 25,000 steps a second alone and 14,000 with two. Bytes count for the instructions that only move.
Team team_for(const PlanStatistics& plan, const Team& team) {
  constexpr double kOperationsPerSecond = 30e9, kBytesPerSecond = 10e9, kWorthSharing = 5e-6;
  const double seconds =
      plan.floating_point_operations / kOperationsPerSecond + plan.arena_bytes / kBytesPerSecond;
  return seconds < kWorthSharing * plan.instructions ? Team(1) : team;
}

}  // namespace

size_t CompiledModel::fetch_index(std::string_view name) const {
  if (const auto place = fetch_places.find(name); place != fetch_places.end()) return place->second;
  throw NotFound(fmt::format("a step has no value '{}'; it has: {}", name, fmt::join(fetch_names, ", ")));
}

ModelCompiler::ModelCompiler(ModelFn model_fn, ModeKeys mode, VariableStore& store, const Team& team,
                             const Arithmetic& arithmetic,
                             std::function<void(ModelBuild&, const ModelSpec&)> begin, int lanes,
                             std::function<Array(int, std::string_view)> variable)
    : model_fn_(std::move(model_fn)),
      mode_(mode),
      store_(store),
      team_(team),
      arithmetic_(arithmetic),
      begin_(std::move(begin)),
      lanes_(lanes),
      variable_(std::move(variable)) {
  if (!variable_) variable_ = [this](int, std::string_view name) { return store_.get(name); };
}

CompiledModel& ModelCompiler::for_signature(const std::vector<TensorType>& signature) {
  for (const auto& model : models_)
    if (model->signature == signature) return *model;
  try {
    models_.push_back(compile(signature));
  } catch (...) {
    rethrow_naming_memory(
        [&] {
          std::string types;
          for (const TensorType& type : signature) types += (types.empty() ? "" : ", ") + to_string(type);
          return fmt::format("the model that model_fn({}) makes for batches of ({})", to_string(mode_),
                             types);
        },
        "use a smaller batch_size (eval_batch_size, where no step trains), or make the model smaller");
  }
  return *models_.back();
}

CompiledModel& ModelCompiler::for_batch(const Batch& batch) {
  auto same = [&](const CompiledModel& model) {
    return std::ranges::equal(model.signature, batch.components, {}, {},
                              [](const Array& array) -> const TensorType& { return array.type(); });
  };
  for (const auto& model : models_)
    if (same(*model)) return *model;
  std::vector<TensorType> signature;
  for (const Array& component : batch.components) signature.push_back(component.type());
  return for_signature(signature);
}

CompileOptions ModelCompiler::compile_options() const {
  return {.rules = default_rules(arithmetic_.rules),
          .convert = convert_layout,
          .hints = kernel_hints(arithmetic_.rules),
          .gradients_in_parts = gradients_in_parts_};
}

std::unique_ptr<PlanInstance> ModelCompiler::instance_of(const std::shared_ptr<const Plan>& plan,
                                                         const Team& team, int lane) const {
  return std::make_unique<PlanInstance>(plan, team, [&](std::string_view name) {
    return name == kLossScaleVariable ? loss_scale_ : variable_(lane, name);
  });
}

void ModelCompiler::make_forward_only(CompiledModel& model) const {
  if (!model.forward_instances.empty()) return;
  const EnteredTeam entered(model.team);
  const auto plan =
      Plan::compile(*model.graph, {.fetches = {model.trained_loss}, .gradients = {}, .after_step_values = {}},
                    compile_options(), model.team);
  for (int lane = 0; lane < lanes_; ++lane)
    model.forward_instances.push_back(instance_of(plan, model.team, lane));
}

// A layer is built before the spec tells what is trained. Where that makes a difference to one, the graph is
// built a second time, by then with what is known.
void ModelCompiler::build(CompiledModel& model) {
  const int64_t samples =
      model.signature.empty() || model.signature[0].shape.rank() == 0 ? 0 : model.signature[0].shape[0];
  TrainingFacts facts{.is_frozen = {},
                      .check_trainable = {},
                      .replicas = training_.replicas,
                      .normalises_together = training_.normalises_together,
                      .is_short_batch = false};
  if (!models_.empty()) facts.is_short_batch = samples < models_.front()->signature[0].shape[0];
  if (!normalises_frozen_)
    facts.is_frozen = [this](std::string_view name, const Shape& shape) {
      return !is_in_one_of(var_scopes_, name) || (training_.is_frozen && training_.is_frozen(name, shape));
    };
  for (;;) {
    model.graph = std::make_unique<Graph>();
    const GraphScope scope(*model.graph);
    const TrainingFactsScope known(facts);
    std::vector<Tensor> components;
    for (size_t i = 0; i < model.signature.size(); ++i)
      components.push_back(
          model.graph->input(static_cast<int>(i), model.signature[i], SourceLocation::current()));
    model.spec = model_fn_(Inputs(std::move(components)), mode_);
    const bool is_news =
        mode_ == ModeKeys::TRAIN && !normalises_frozen_ && model.spec.var_scopes != var_scopes_;
    var_scopes_ = model.spec.var_scopes;
    if (!is_news || known.asked().empty()) return;
  }
}

std::unique_ptr<CompiledModel> ModelCompiler::compile(const std::vector<TensorType>& signature) {
  auto model = std::make_unique<CompiledModel>();
  model->signature = signature;
  build(*model);
  const GraphScope scope(*model->graph);
  check_spec(model->spec, mode_, signature);
  if (mode_ == ModeKeys::TRAIN && models_.empty()) warn_of_likely_mistakes(*model->graph, signature);
  if (arithmetic_.rules.precision != Precision::kBFloat16 && forces_bfloat16(*model->graph))
    supported_precision(Precision::kBFloat16);

  PlanRequest request;
  FetchList fetches(
      *model->graph,
      mode_ == ModeKeys::TRAIN ? regularized_loss(*model->graph, model->spec) : model->spec.loss,
      model->spec);
  if (mode_ == ModeKeys::TRAIN) {
    fetches.fetch(std::string(kTrainedLoss), fetches.loss());
    model->trained_loss = fetches.loss();
  }
  if (mode_ == ModeKeys::EVAL)
    fetch_evaluated(model->spec, fetches);
  else
    for (const auto& [name, tensor] : model->spec.log_info) fetches.fetch(name, tensor);
  if (mode_ != ModeKeys::EVAL)
    for (const auto& [name, tensor] : model->spec.output_info) fetches.fetch(name, tensor);
  if (begin_) begin_(fetches, model->spec);
  store_.declare(*model->graph);
  if (mode_ == ModeKeys::TRAIN) {
    const Tensor loss = loss_scale_.defined() ? scaled(fetches.loss(), *model->graph) : fetches.loss();
    request.gradients = gradients_of(loss, *model->graph, model->spec, training_);
    request.after_step_values = model->graph->after_step_values();
    refuse_after_step_values_of_trained(request.gradients, *model->graph);
  }
  request.fetches = fetches.tensors;
  if (mode_ == ModeKeys::TRAIN) model->exchanges = exchanges_of(*model->graph, request);
  for (const GradientOutput& gradient : request.gradients)
    model->gradient_variables.push_back(model->graph->spec(gradient.variable).name);
  model->plan = Plan::compile(*model->graph, request, compile_options(), team_);
  model->team = arithmetic_.team_follows_work ? team_for(model->plan->statistics(), team_) : team_;
  if (model->team.size() != team_.size()) {
    const EnteredTeam entered(model->team);
    model->plan = Plan::compile(*model->graph, request, compile_options(), model->team);
  }
  model->instance = instance_of(model->plan, model->team, 0);
  for (int lane = 1; lane < lanes_; ++lane)
    model->further_instances.push_back(instance_of(model->plan, model->team, lane));
  model->fetch_names = std::move(fetches.names);
  model->fetch_places = std::move(fetches.places);
  if (mode_ == ModeKeys::EVAL) model->evaluated = evaluated_values(*model);
  return model;
}

}  // namespace mox::internal
