#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kLog{
    .name = "log",
    .infer = elementwise::infer_floating_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {call.gradient() / call.input(0)};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kLog),
};

}  // namespace

Tensor log(const Tensor& x, SourceLocation where) { return make_tensor(kLog, {x}, {}, where); }

}  // namespace mox
