// One operation of a graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/tensor.h"

namespace mox {

class Graph;
struct Op;

// What the scopes of a model function say about the nodes that are made in them. The gradient of a node, and
// what a rewrite puts in its place, has its traits.
struct NodeTraits {
  // The type of the numbers that dense arithmetic takes here, kFloat32 or kBFloat16. None: the compilation's.
  std::optional<DType> compute_dtype;
  // > 0: the stretch of the graph whose values are computed again for its gradients
  // (runtime/graph/recomputation.h).
  int recomputed_stretch = 0;
  bool is_gradient = false;  // made by differentiation
};

struct Node {
  Graph* graph = nullptr;
  int id = 0;  // position in the graph: inputs always have smaller ids
  const Op* op = nullptr;
  std::string name;  // unique in the graph
  Attributes attributes;
  std::vector<Tensor> inputs;
  std::vector<TensorType> outputs;
  NodeTraits traits;
  SourceLocation where;  // the user's line; a gradient node carries its forward node's

  Tensor output(int i = 0) { return Tensor(this, i); }
};

}  // namespace mox
