#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kTanh{
    .name = "tanh",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {call.gradient() * (1 - square(call.output()))};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kTanh),
};

}  // namespace

Tensor tanh(const Tensor& x, SourceLocation where) { return make_tensor(kTanh, {x}, {}, where); }

}  // namespace mox
