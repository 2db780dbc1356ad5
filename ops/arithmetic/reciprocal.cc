#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kReciprocal{
    .name = "reciprocal",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {-(call.gradient() * square(call.output()))};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kReciprocal),
};

}  // namespace

Tensor reciprocal(const Tensor& x, SourceLocation where) { return make_tensor(kReciprocal, {x}, {}, where); }

}  // namespace mox
