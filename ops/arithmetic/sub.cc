#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kSub{
    .name = "sub",
    .infer = elementwise::infer_numeric_binary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const Tensor &a = call.input(0), &b = call.input(1), &g = call.gradient();
      return {sum_to(g, a.shape()), sum_to(-g, b.shape())};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kSub),
};

}  // namespace

Tensor sub(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kSub, a, b, where);
}

}  // namespace mox
