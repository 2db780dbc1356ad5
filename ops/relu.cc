#include "ops/relu.h"

#include "ops/comparison.h"
#include "ops/internal/elementwise_op.h"
#include "ops/internal/fusable_ops.h"
#include "ops/select.h"

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
