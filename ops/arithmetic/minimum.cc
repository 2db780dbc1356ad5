#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

const Op kMinimum{
    .name = "minimum",
    .infer = elementwise::infer_numeric_binary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const Tensor &a = call.input(0), &b = call.input(1), &g = call.gradient();
      const Tensor a_is_smaller = less_equal(a, b);
      return {sum_to(select(a_is_smaller, g, 0), a.shape()), sum_to(select(a_is_smaller, 0, g), b.shape())};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kMinimum),
};

}  // namespace

Tensor minimum(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kMinimum, a, b, where);
}

}  // namespace mox
