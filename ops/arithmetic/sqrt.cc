#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kSqrt{
    .name = "sqrt",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {0.5f * call.gradient() / call.output()};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kSqrt),
};

}  // namespace

Tensor sqrt(const Tensor& x, SourceLocation where) { return make_tensor(kSqrt, {x}, {}, where); }

}  // namespace mox
