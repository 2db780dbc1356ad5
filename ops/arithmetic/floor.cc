#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"

namespace mox {
namespace {

const Op kFloor{
    .name = "floor",
    .infer = elementwise::infer_floating_unary,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kFloor),
};

}  // namespace

Tensor floor(const Tensor& x, SourceLocation where) { return make_tensor(kFloor, {x}, {}, where); }

}  // namespace mox
