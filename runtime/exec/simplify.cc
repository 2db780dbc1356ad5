#include "runtime/exec/internal/simplify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace mox {
namespace {

// Folding must not turn a small recipe into a large plan.
constexpr size_t kLargestFoldedBytes = size_t{64} << 20;
// What has no inputs (a fill) is cheaper to make again than to read, unless it is small.
constexpr size_t kLargestMadeBytes = size_t{16} << 10;

bool is_constant(const Tensor& tensor) { return tensor.node()->op->kind == Op::Kind::kConstant; }

// On one thread: a constant has the same bits whatever the team of the plan, in which nothing would say so.
std::optional<std::vector<Array>> run_on_constants(const Node& node, const RewriteView& view,
                                                   const CompileOptions& options) {
  const Team team(1);
  const EnteredTeam entered(team);
  std::vector<Array> inputs;
  std::vector<Layout> plain;
  for (const Tensor& input : node.inputs) {
    inputs.push_back(view.mapped(input).node()->attributes.get<Array>("value"));
    plain.push_back(Layout::plain(input.type()));
  }
  const Kernel kernel =
      node.op->compile({node, plain, std::vector<bool>(node.inputs.size(), true), team, options.hints});
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!kernel.input_layouts[i].is_plain()) return std::nullopt;
  for (const Layout& layout : kernel.output_layouts)
    if (!layout.is_plain()) return std::nullopt;
  if (kernel.alias >= 0) {
    return std::vector<Array>{inputs[kernel.alias].reshaped(node.outputs[0].shape)};
  }
  std::vector<Array> outputs;
  std::vector<const std::byte*> input_pointers;
  std::vector<std::byte*> output_pointers;
  for (const Array& input : inputs) input_pointers.push_back(input.data());
  for (const TensorType& type : node.outputs) {
    outputs.emplace_back(type);
    output_pointers.push_back(outputs.back().data());
  }
  const auto scratch = allocate_aligned(kernel.scratch_bytes);
  kernel.instantiate()({input_pointers, output_pointers, scratch.get(), team, 0, 0});
  return outputs;
}

// What makes two nodes compute the same; empty if that cannot be told.
std::string identity_of(const Node& node, const RewriteView& view) {
  if (is_constant(Tensor(const_cast<Node*>(&node), 0))) {
    const Array& value = node.attributes.get<Array>("value");
    if (value.elements() != 1) return "";
    return fmt::format("constant {} {}", to_string(value.type()),
                       std::string_view(reinterpret_cast<const char*>(value.data()), value.bytes()));
  }
  if (node.op->kind != Op::Kind::kCompute) return "";
  std::string identity = fmt::format("{} ", static_cast<const void*>(node.op));
  if (const auto dtype = node.traits.compute_dtype) identity += fmt::format("in {} ", to_string(*dtype));
  for (const auto& [name, attribute] : node.attributes) {
    if (std::holds_alternative<Array>(attribute)) return "";
    if (auto number = std::get_if<double>(&attribute)) {
      identity += fmt::format("{}={:a} ", name, *number);
    } else if (auto numbers = std::get_if<std::vector<double>>(&attribute)) {
      identity += name + '=';
      for (double n : *numbers) identity += fmt::format("{:a},", n);
    } else {
      identity += name + '=' + to_string(attribute) + ' ';
    }
  }
  for (const Tensor& input : node.inputs) {
    const Tensor mapped = view.mapped(input);
    identity += fmt::format("({} {})", mapped.node()->id, mapped.index());
  }
  return identity;
}

}  // namespace

bool is_of_constants(const Node& node) {
  return node.op->kind == Op::Kind::kCompute && node.op->compile &&
         std::ranges::all_of(node.inputs, is_constant);
}

RewriteRule fold_constants(const CompileOptions& options) {
  return [&options](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
    if (node.op->kind != Op::Kind::kCompute || !node.op->compile) return std::nullopt;
    size_t bytes = 0;
    for (const TensorType& type : node.outputs) bytes += type.bytes();
    if (bytes > (node.inputs.empty() ? kLargestMadeBytes : kLargestFoldedBytes)) return std::nullopt;
    if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](auto& t) { return is_constant(view.mapped(t)); }))
      return std::nullopt;
    auto values = run_on_constants(node, view, options);
    if (!values) return std::nullopt;
    std::vector<Tensor> results;
    for (Array& value : *values) results.push_back(view.target().constant(std::move(value), node.where));
    return results;
  };
}

RewriteRule share_equal_nodes() {
  auto seen = std::make_shared<std::map<std::string, std::vector<Tensor>>>();
  return [seen](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
    const std::string identity = identity_of(node, view);
    if (identity.empty()) return std::nullopt;
    auto found = seen->find(identity);
    if (found != seen->end()) return found->second;
    std::vector<Tensor> inputs;
    for (const Tensor& input : node.inputs) inputs.push_back(view.mapped(input));
    Node& copy = view.target().copy_node(node, inputs);
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < node.outputs.size(); ++i) outputs.push_back(Tensor(&copy, i));
    seen->emplace(identity, outputs);
    return outputs;
  };
}

}  // namespace mox
