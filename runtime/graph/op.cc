#include "runtime/graph/op.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/graph/graph.h"

namespace mox {

void OpCall::fail(std::string_view expected) const {
  std::string given;
  for (const Tensor& input : inputs) {
    if (!given.empty()) given += ", ";
    given += to_string(input);
  }
  std::string text = fmt::format("{} '{}' at {}: expected {}; given ({})", op.name, node_name,
                                 to_string(where), expected, given);
  if (const std::string extra = to_string(attributes); !extra.empty()) text += " with " + extra;
  throw InvalidArgument(text);
}

Node& make_node(const Op& op, std::vector<Tensor> inputs, Attributes attributes, SourceLocation where) {
  for (const Tensor& input : inputs)
    if (input.defined())
      return input.node()->graph->add_node(op, std::move(inputs), std::move(attributes), where);
  return current_graph(op.name).add_node(op, std::move(inputs), std::move(attributes), where);
}

Node& make_node(const Op& op, std::initializer_list<Tensor> inputs, Attributes attributes,
                SourceLocation where) {
  return make_node(op, std::vector<Tensor>(inputs), std::move(attributes), where);
}

std::vector<Tensor> no_gradient(const GradientCall& call) {
  return std::vector<Tensor>(call.node.inputs.size());
}

std::vector<TensorType> same_as_input(const OpCall& call) { return {call.type(0)}; }

}  // namespace mox
