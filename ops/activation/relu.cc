#include "ops/activation/activation.h"
#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "ops/support/fusable_ops.h"

namespace mox {

const Op& relu_op() {
  static const Op op{
      .name = "relu",
      .infer = elementwise::infer_floating_unary,
      .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
        return {select(greater(call.output(), 0), call.gradient(), 0)};
      },
      .compile = elementwise::compile_instruction(elementwise::Opcode::kRelu),
  };
  return op;
}

Tensor relu(const Tensor& x, SourceLocation where) { return make_tensor(relu_op(), {x}, {}, where); }

}  // namespace mox
