#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kNeg{
    .name = "neg",
    .infer = elementwise::infer_numeric_unary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> { return {neg(call.gradient())}; },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kNeg),
};

}  // namespace

Tensor neg(const Tensor& x, SourceLocation where) { return make_tensor(kNeg, {x}, {}, where); }

}  // namespace mox
