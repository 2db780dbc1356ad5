#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"
#include "ops/support/fusable_ops.h"

namespace mox {

const Op& add_op() {
  static const Op op{
      .name = "add",
      .infer = elementwise::infer_numeric_binary,
      .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
        const Tensor &a = call.input(0), &b = call.input(1), &g = call.gradient();
        return {sum_to(g, a.shape()), sum_to(g, b.shape())};
      },
      .compile = elementwise::compile_instruction(elementwise::Opcode::kAdd),
  };
  return op;
}

Tensor add(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(add_op(), a, b, where);
}

}  // namespace mox
