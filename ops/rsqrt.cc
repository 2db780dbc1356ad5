#include "ops/rsqrt.h"

#include "ops/internal/elementwise_op.h"
#include "ops/operators.h"
#include "ops/square.h"

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
