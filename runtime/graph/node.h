// One operation of a graph.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/source_location.h"
#include "runtime/graph/attributes.h"
#include "runtime/graph/tensor.h"

namespace mox {

class Graph;
struct Op;

struct Node {
  Graph* graph = nullptr;
  int id = 0;          // position in the graph: inputs always have smaller ids
  const Op* op = nullptr;
  std::string name;    // unique in the graph
  Attributes attributes;
  std::vector<Tensor> inputs;
  std::vector<TensorType> outputs;
  SourceLocation where;  // the user's line; a gradient node carries its forward node's

  Tensor output(int i = 0) { return Tensor(this, i); }
};

}  // namespace mox
