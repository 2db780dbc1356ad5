#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kMul{
    .name = "mul",
    .infer = elementwise::infer_numeric_binary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const Tensor &a = call.input(0), &b = call.input(1), &g = call.gradient();
      return {sum_to(g * b, a.shape()), sum_to(g * a, b.shape())};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kMul),
};

}  // namespace

Tensor mul(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kMul, a, b, where);
}

}  // namespace mox
