#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kDiv{
    .name = "div",
    .infer = elementwise::infer_floating_binary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const Tensor &a = call.input(0), &b = call.input(1), &g = call.gradient();
      return {sum_to(g / b, a.shape()), sum_to(-(g * call.output() / b), b.shape())};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kDiv),
};

}  // namespace

Tensor div(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kDiv, a, b, where);
}

}  // namespace mox
