#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kExp{
    .name = "exp",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {call.gradient() * call.output()};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kExp),
};

}  // namespace

Tensor exp(const Tensor& x, SourceLocation where) { return make_tensor(kExp, {x}, {}, where); }

}  // namespace mox
