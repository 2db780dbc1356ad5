#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

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
