#include "ops/activation/activation.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kSigmoid{
    .name = "sigmoid",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {call.gradient() * (call.output() * (1 - call.output()))};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kSigmoid),
};

}  // namespace

Tensor sigmoid(const Tensor& x, SourceLocation where) { return make_tensor(kSigmoid, {x}, {}, where); }

}  // namespace mox
