#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kRound{
    .name = "round",
    .infer = elementwise::infer_floating_unary,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kRound),
};

}  // namespace

Tensor round(const Tensor& x, SourceLocation where) { return make_tensor(kRound, {x}, {}, where); }

}  // namespace mox
