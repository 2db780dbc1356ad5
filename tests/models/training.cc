#include "tests/models/training.h"

namespace mox {

Training::Training(std::string_view network, const NetworkOptions& options, Array images, Array labels,
                   ModeKeys mode, std::span<const NamedArray> values, int threads, Precision precision,
                   bool direct_convolutions)
    : team_(threads), batch_{std::move(images), std::move(labels)} {
  team_.enter();
  const GraphScope scope(graph_);
  const NetworkOutput output =
      get_model_fn(network, options)(graph_.input(0, batch_[0].type(), SourceLocation::current()), mode);
  const Tensor loss = reduce_mean(sparse_softmax_cross_entropy(
      output.logits, graph_.input(1, batch_[1].type(), SourceLocation::current())));
  PlanRequest request{
      .fetches = {loss, output.logits}, .gradients = {}, .after_step_values = graph_.after_step_values()};
  store_.restore(values);
  store_.require_restored("the state");
  store_.declare(graph_);
  if (mode == ModeKeys::TRAIN) {
    const std::vector<Tensor> targets = get_collection("trainable_variables");
    const std::vector<Tensor> found = gradients(loss, targets);
    for (size_t i = 0; i < targets.size(); ++i) {
      request.gradients.push_back({targets[i], found[i]});
      const std::string& name = graph_.spec(targets[i]).name;
      const Array value = store_.get(name);
      parameters_.push_back({name, value, Array(value.type())});
    }
  }
  instance_ = std::make_unique<PlanInstance>(
      Plan::compile(
          graph_, request,
          {.rules = default_rules({.precision = precision, .direct_convolutions = direct_convolutions}),
           .convert = convert_layout,
           .hints = kernel_hints({.direct_convolutions = direct_convolutions})},
          team_),
      team_, [&](std::string_view name) { return store_.get(name); });
  optimizer_ = get_optimizer_fn("momentum", {.learning_rate = 1, .momentum = 0.9})();
}

void Training::compute() { instance_->run({.components = batch_, .step = step_}); }

void Training::update(double learning_rate) {
  ++step_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    const std::span<float> slots[] = {parameter.momentum.values<float>()};
    optimizer_->apply({.name = parameter.name,
                       .value = parameter.value.values<float>(),
                       .gradient = instance_->gradient(i).values<float>(),
                       .slots = slots,
                       .learning_rate = learning_rate,
                       .step = step_},
                      team_);
  }
  instance_->take_after_step_values();
}

Array Training::gradient(std::string_view variable) const {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == variable) return instance_->gradient(i);
  return {};
}

}  // namespace mox
