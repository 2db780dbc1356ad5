#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kSquare{
    .name = "square",
    .infer = elementwise::infer_numeric_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {2 * call.gradient() * call.input(0)};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kSquare),
};

}  // namespace

Tensor square(const Tensor& x, SourceLocation where) { return make_tensor(kSquare, {x}, {}, where); }

}  // namespace mox
