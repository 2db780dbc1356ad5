// An operator: its name, its shape rule, its gradient and its kernel. One constant `Op` per operator; the
// nodes of a graph point to it, so it must outlive every graph (a namespace-scope or function-local static
// constant). There is no registry: a user's program defines an Op and a function that calls `make_node`, and
// is done (docs/writing_an_op.md).
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/kernel.h"
#include "runtime/graph/node.h"
#include "runtime/graph/tensor.h"

namespace mox {

// A call of an op while the graph is built: what its shape rule sees.
struct OpCall {
  const Op& op;
  std::string_view node_name;
  std::span<const Tensor> inputs;
  const Attributes& attributes;
  SourceLocation where;

  const TensorType& type(int i) const { return inputs[i].type(); }
  const Shape& shape(int i) const { return type(i).shape; }
  DType dtype(int i) const { return type(i).dtype; }

  // Throws InvalidArgument: op, node, the user's file and line, every input's type, and `expected`, which
  // says what the op takes ("inputs of one dtype", "a matrix [rows, columns]").
  [[noreturn]] void fail(std::string_view expected) const;
  void require(bool condition, std::string_view expected) const {
    if (!condition) fail(expected);
  }
};

// What a gradient function sees: the forward node and the gradients of its outputs (undefined where the loss
// does not depend on that output). It answers with one tensor per input of the node; undefined means no
// gradient flows there (integer inputs). It builds the gradient with public ops.
struct GradientCall {
  const Node& node;
  std::span<const Tensor> output_gradients;

  const Tensor& input(int i) const { return node.inputs[i]; }
  Tensor output(int i = 0) const { return Tensor(const_cast<Node*>(&node), i); }
  // The gradient of output i; asserted to be defined for i = 0 (the driver never asks otherwise for
  // one-output ops).
  const Tensor& gradient(int i = 0) const { return output_gradients[i]; }
};

struct Op {
  // What the compiler has to know about a node without knowing its op.
  enum class Kind {
    kCompute,   // the outputs are a pure function of inputs and attributes: may be folded, shared, dropped
    kRandom,    // also of (seed, step): never folded
    kInput,     // a component of the batch; attribute "component"
    kVariable,  // a named variable in the host's store
    kConstant,  // attribute "value"
  };

  std::string_view name;
  Kind kind = Kind::kCompute;
  std::function<std::vector<TensorType>(const OpCall&)> infer;
  // Without one a derivative that would have to pass is an error (runtime/graph/autodiff.h); `no_gradient`
  // where it is 0.
  std::function<std::vector<Tensor>(const GradientCall&)> gradient = nullptr;
  std::function<Kernel(const KernelRequest&)> compile = nullptr;  // none for inputs, variables and constants
};

// Adds a node to the graph of its inputs (to the current graph if it has none) and returns it. The node's
// name is the current name scope plus the op's name, made unique. Throws InvalidArgument from the shape rule,
// or if an input is undefined or the inputs belong to different graphs.
Node& make_node(const Op& op, std::initializer_list<Tensor> inputs, Attributes attributes,
                SourceLocation where);
Node& make_node(const Op& op, std::vector<Tensor> inputs, Attributes attributes, SourceLocation where);

// The first output of a new node: what most op functions return.
inline Tensor make_tensor(const Op& op, std::initializer_list<Tensor> inputs, Attributes attributes,
                          SourceLocation where) {
  return Tensor(&make_node(op, inputs, std::move(attributes), where), 0);
}

// The gradient function of an op whose results do not change with its inputs, but in steps: none flows
// to any input.
std::vector<Tensor> no_gradient(const GradientCall& call);

// Shape rules that many ops share.
std::vector<TensorType> same_as_input(const OpCall& call);  // output 0 has the type of input 0

}  // namespace mox
