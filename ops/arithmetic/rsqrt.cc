#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kRsqrt{
    .name = "rsqrt",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {-0.5f * call.gradient() * (call.output() * square(call.output()))};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kRsqrt),
};

}  // namespace

Tensor rsqrt(const Tensor& x, SourceLocation where) { return make_tensor(kRsqrt, {x}, {}, where); }

}  // namespace mox
