#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kAbs{
    .name = "abs",
    .infer = elementwise::infer_numeric_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {call.gradient() * sign(call.input(0))};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kAbs),
};

}  // namespace

Tensor abs(const Tensor& x, SourceLocation where) { return make_tensor(kAbs, {x}, {}, where); }

}  // namespace mox
