// Inputs of a node by name, for nodes that have many or may lack some: a struct of them, which is packed into
// the list that a node holds, and unpacked from it by rules and kernels.
//
//   template <typename T>
//   struct ShiftInputs {
//     T x = {}, scale = {}, shift = {};
//     static constexpr auto names() {
//       using S = ShiftInputs;
//       return std::array<InputName<S, T>, 3>{{{"x", &S::x}, {"scale", &S::scale}, {"shift", &S::shift}}};
//     }
//   };
//
//   make_packed_node(op, ShiftInputs<Tensor>{.x = x, .shift = shift}, attributes, where);  // without a scale
//   unpack<ShiftInputs>(node).scale     // an undefined Tensor
//   positions<ShiftInputs>(node).shift  // an InputPosition: where a kernel finds it
//
// The node holds the defined inputs in the order of names(), and their names in its attribute "inputs". Of a
// node without that attribute, of an op whose inputs are always the same, the first names are meant.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/kernel.h"
#include "runtime/graph/op.h"

namespace mox {

// Which of a node's inputs; none if the node has none of that name.
struct InputPosition {
  int index = -1;

  bool given() const { return index >= 0; }
  // Null if there is none.
  template <typename T>
  const T* of(const KernelArguments& arguments) const {
    return given() ? arguments.input<T>(index) : nullptr;
  }
  // Gives the input of `kernel`, if there is one, this layout.
  void set_layout(Kernel& kernel, const Layout& layout) const {
    if (given()) kernel.input_layouts[index] = layout;
  }
  // Output `output` of `kernel` may take the memory of the input, if there is one (Kernel::in_place).
  void lend_to(Kernel& kernel, int output) const {
    if (given()) kernel.in_place.emplace_back(output, index);
  }
};

// A member of a struct of inputs.
template <typename S, typename T>
struct InputName {
  std::string_view name;
  T S::*member;
};

namespace named_inputs {
// Where `name` stands among the inputs of a node with these attributes and `count` inputs; -1: nowhere.
// `order`: which of the struct's names it is.
int position_of(std::string_view name, size_t order, const Attributes& attributes, size_t count);
void set_names(Attributes& attributes, const std::vector<std::string_view>& names);
}  // namespace named_inputs

template <template <typename> typename Inputs>
Inputs<InputPosition> positions(const Attributes& attributes, size_t count) {
  Inputs<InputPosition> result;
  size_t order = 0;
  for (const auto& [name, member] : Inputs<InputPosition>::names())
    (result.*member).index = named_inputs::position_of(name, order++, attributes, count);
  return result;
}
template <template <typename> typename Inputs>
Inputs<InputPosition> positions(const Node& node) {
  return positions<Inputs>(node.attributes, node.inputs.size());
}
template <template <typename> typename Inputs>
Inputs<InputPosition> positions(const OpCall& call) {
  return positions<Inputs>(call.attributes, call.inputs.size());
}

// Of a Node or an OpCall.
template <template <typename> typename Inputs, typename Source>
Inputs<Tensor> unpack(const Source& source) {
  Inputs<Tensor> result;
  const Inputs<InputPosition> where = positions<Inputs>(source);
  constexpr auto kTensors = Inputs<Tensor>::names();
  constexpr auto kPositions = Inputs<InputPosition>::names();
  for (size_t i = 0; i < kTensors.size(); ++i)
    if (const InputPosition position = where.*kPositions[i].member; position.given())
      result.*kTensors[i].member = source.inputs[position.index];
  return result;
}

// The same inputs, each as `change` has it (RewriteView::mapped).
template <template <typename> typename Inputs, typename Change>
Inputs<Tensor> each_of(Inputs<Tensor> inputs, const Change& change) {
  for (const auto& [name, member] : Inputs<Tensor>::names())
    if ((inputs.*member).defined()) inputs.*member = change(inputs.*member);
  return inputs;
}

// The defined inputs in the order of names(): for make_node, where an op's inputs are always the first ones.
template <template <typename> typename Inputs>
std::vector<Tensor> in_order(const Inputs<Tensor>& inputs) {
  std::vector<Tensor> defined;
  for (const auto& [name, member] : Inputs<Tensor>::names())
    if ((inputs.*member).defined()) defined.push_back(inputs.*member);
  return defined;
}

template <template <typename> typename Inputs>
Node& make_packed_node(const Op& op, const Inputs<Tensor>& inputs, Attributes attributes,
                       SourceLocation where) {
  std::vector<std::string_view> names;
  for (const auto& [name, member] : Inputs<Tensor>::names())
    if ((inputs.*member).defined()) names.push_back(name);
  named_inputs::set_names(attributes, names);
  return make_node(op, in_order(inputs), std::move(attributes), where);
}

}  // namespace mox
