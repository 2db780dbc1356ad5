#include "runtime/graph/autodiff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/internal/tensor_key.h"

namespace mox {
namespace {

// Nodes whose value depends on a target: only through these does a gradient have to flow.
std::vector<bool> nodes_that_depend_on(const Graph& graph, std::span<const Tensor> targets, int last) {
  std::vector<bool> depends(static_cast<size_t>(last) + 1, false);
  for (const Tensor& target : targets)
    if (target.node()->id <= last) depends[target.node()->id] = true;
  for (int id = 0; id <= last; ++id)
    for (const Tensor& input : graph.nodes()[id]->inputs)
      if (depends[input.node()->id]) depends[id] = true;
  return depends;
}

bool reads_one_that_depends(const Node& node, const std::vector<bool>& depends) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Tensor& input) { return depends[input.node()->id]; });
}

NodeTraits gradient_traits(NodeTraits traits) {
  traits.is_gradient = true;
  return traits;
}

// The gradients of tensors, as far as they have come, by key_of.
using Gradients = std::map<int64_t, Tensor>;

void require_loss(const Tensor& loss) {
  if (!loss.defined()) throw InvalidArgument("the loss is an undefined tensor");
  if (loss.shape().elements() != 1 || !is_floating(loss.dtype()))
    throw InvalidArgument(
        fmt::format("a loss is one floating-point number (use reduce_mean or reduce_sum); "
                    "'{}' made at {} is {}",
                    loss.name(), to_string(loss.where()), to_string(loss.type())));
}

void require_targets(const Tensor& loss, std::span<const Tensor> targets) {
  for (const Tensor& target : targets)
    if (!target.defined() || target.node()->graph != loss.node()->graph)
      throw InvalidArgument(
          fmt::format("the gradient of the loss '{}' made at {} was asked for with respect to {}",
                      loss.name(), to_string(loss.where()),
                      target.defined() ? fmt::format("'{}', a tensor of another graph", target.name())
                                       : "an undefined tensor"));
}

// Of each output of the node; empty if none has one.
std::vector<Tensor> gradients_of_outputs(const Node& node, const Gradients& gradients) {
  std::vector<Tensor> of_outputs(node.outputs.size());
  bool reached = false;
  for (size_t i = 0; i < of_outputs.size(); ++i) {
    const auto found = gradients.find(tensor_key(node.id, i));
    if (found != gradients.end()) of_outputs[i] = found->second, reached = true;
  }
  return reached ? of_outputs : std::vector<Tensor>();
}

// What the node's op answers: one for each input.
std::vector<Tensor> gradients_of_inputs(const Node& node, const std::vector<Tensor>& of_outputs,
                                        const Tensor& loss) {
  if (!node.op->gradient)
    throw InvalidArgument(
        fmt::format("the gradient of the loss '{}' made at {} was asked for through '{}' made at {}, but "
                    "its op '{}' has none. Compute it with other ops, give it one (docs/writing_an_op.md), "
                    "or put stop_gradient around it where it shall count as a constant",
                    loss.name(), to_string(loss.where()), node.name, to_string(node.where), node.op->name));
  std::vector<Tensor> of_inputs = node.op->gradient({node, of_outputs});
  if (of_inputs.size() != node.inputs.size())
    throw InvalidArgument(fmt::format(
        "the gradient function of the op '{}' returned {} tensors for '{}' made at {}, which has {} "
        "inputs; it answers with one for each (an undefined one where no gradient flows)",
        node.op->name, of_inputs.size(), node.name, to_string(node.where), node.inputs.size()));
  return of_inputs;
}

// Adds what the node hands on to its inputs.
void propagate(const Node& node, const std::vector<Tensor>& of_inputs, const std::vector<bool>& depends,
               const AutodiffVocabulary& vocabulary, Gradients& gradients) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& input = node.inputs[i];
    const Tensor& gradient = of_inputs[i];
    if (!gradient.defined() || !depends[input.node()->id]) continue;
    if (gradient.type() != input.type())
      throw InvalidArgument(fmt::format(
          "the gradient function of the op '{}' returned {} for input {} of '{}' made at {}, "
          "which is {}; a gradient has the type of its input",
          node.op->name, to_string(gradient), i, node.name, to_string(node.where), to_string(input)));
    Tensor& sum = gradients[key_of(input)];
    sum = sum.defined() ? vocabulary.add(sum, gradient) : gradient;
  }
}

}  // namespace

std::vector<Tensor> build_gradients(const Tensor& loss, std::span<const Tensor> targets,
                                    const AutodiffVocabulary& vocabulary) {
  require_loss(loss);
  require_targets(loss, targets);
  const Graph& graph = *loss.node()->graph;
  const int last = loss.node()->id;
  const std::vector<bool> depends = nodes_that_depend_on(graph, targets, last);

  NameScope scope("gradients");
  TraitsScope of_caller(gradient_traits(current_traits()));
  Gradients gradients;
  {
    LocationScope where(loss.where());
    gradients[key_of(loss)] = vocabulary.ones_like(loss);
  }
  for (int id = last; id >= 0; --id) {
    const Node& node = *graph.nodes()[id];
    if (!depends[id] || node.inputs.empty()) continue;
    const std::vector<Tensor> of_outputs = gradients_of_outputs(node, gradients);
    if (of_outputs.empty() || !reads_one_that_depends(node, depends)) continue;
    LocationScope where(node.where);
    TraitsScope traits(gradient_traits(node.traits));
    propagate(node, gradients_of_inputs(node, of_outputs, loss), depends, vocabulary, gradients);
  }
  std::vector<Tensor> result;
  for (const Tensor& target : targets) {
    const auto found = gradients.find(key_of(target));
    result.push_back(found == gradients.end() ? Tensor() : found->second);
  }
  return result;
}

}  // namespace mox
