#include "runtime/graph/kernel.h"

namespace mox {
namespace {

Kernel with_plain_layouts(const Node& node) {
  Kernel kernel;
  for (const Tensor& input : node.inputs) kernel.input_layouts.push_back(Layout::plain(input.type()));
  for (const TensorType& output : node.outputs) kernel.output_layouts.push_back(Layout::plain(output));
  return kernel;
}

}  // namespace

Kernel plain_kernel(const Node& node, KernelFunction run, std::string implementation) {
  Kernel kernel = with_plain_layouts(node);
  kernel.implementation = std::move(implementation);
  kernel.instantiate = [run = std::move(run)] { return run; };
  return kernel;
}

Kernel alias_kernel(const Node& node, int input) {
  Kernel kernel = with_plain_layouts(node);
  kernel.alias = input;
  kernel.implementation = "alias";
  return kernel;
}

}  // namespace mox
