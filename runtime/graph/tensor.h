// Tensor: a symbolic handle to one output of a node in a graph. It has a type, known as soon as it exists,
// and no value: values appear when a compiled plan runs. Cheap to copy; valid as long as its graph.
#pragma once

#include <string>

#include "runtime/base/source_location.h"
#include "runtime/tensor/array.h"

namespace mox {

struct Node;

class Tensor {
 public:
  Tensor() = default;  // undefined: stands for "no tensor"
  Tensor(Node* node, int index) : node_(node), index_(index) {}

  bool defined() const { return node_ != nullptr; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  // "scope/op_2", and "scope/op_2:1" for a second output.
  std::string name() const;
  // Where the user's program made it.
  const SourceLocation& where() const;
  // Renames the node (a suffix is added if the name is taken) and returns the
  // same tensor: `relu(x).named("hidden")`.
  Tensor named(std::string_view name) const;

  Node* node() const { return node_; }
  int index() const { return index_; }
  bool operator==(const Tensor&) const = default;

 private:
  Node* node_ = nullptr;
  int index_ = 0;
};

// "dense/matmul: float32[32, 10]"
std::string to_string(const Tensor& tensor);

}  // namespace mox
