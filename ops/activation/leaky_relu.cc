#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "runtime/tensor/float32_range.h"

namespace mox {
namespace {

using elementwise::Opcode;

const Op kLeakyRelu{
    .name = "leaky_relu",
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      call.require(is_finite_float32(call.attributes.get<double>("slope")),
                   "a slope that is finite as a float32");
      return elementwise::infer_floating_unary(call);
    },
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const double slope = call.node.attributes.get<double>("slope");
      // Of x, and not of the result: a slope of 0 or below loses x's sign, and so does a product that float32
      // rounds to 0.
      return {select(less(call.input(0), 0), call.gradient() * slope, call.gradient())};
    },
    .compile = elementwise::ElementwiseCompile{[](const Node& node) {
      return elementwise::Program{
          .inputs = 1,
          .instructions = {{.opcode = Opcode::kConstant, .constant = node.attributes.get<double>("slope")},
                           {.opcode = Opcode::kLeakyRelu, .operands = {0, 1, -1}}}};
    }},
};

}  // namespace

Tensor leaky_relu(const Tensor& x, LeakyReluOptions options, SourceLocation where) {
  return make_tensor(kLeakyRelu, {x}, {{"slope", options.slope}}, where);
}

}  // namespace mox
