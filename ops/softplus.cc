#include "ops/softplus.h"

#include "ops/internal/elementwise_op.h"
#include "ops/operators.h"
#include "ops/sigmoid.h"

namespace mox {
namespace {

const Op kSoftplus{
    .name = "softplus",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {call.gradient() * sigmoid(call.input(0))};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kSoftplus),
};

}  // namespace

Tensor softplus(const Tensor& x, SourceLocation where) { return make_tensor(kSoftplus, {x}, {}, where); }

}  // namespace mox
