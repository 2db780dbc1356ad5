#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kSign{
    .name = "sign",
    .infer = elementwise::infer_numeric_unary,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kSign),
};

}  // namespace

Tensor sign(const Tensor& x, SourceLocation where) { return make_tensor(kSign, {x}, {}, where); }

}  // namespace mox
