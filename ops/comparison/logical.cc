#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

const Op kLogicalOr{
    .name = "logical_or",
    .infer = elementwise::infer_logical,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kLogicalOr),
};
const Op kLogicalNot{
    .name = "logical_not",
    .infer = elementwise::infer_logical,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kLogicalNot),
};

}  // namespace

const Op& logical_and_op() {
  static const Op op{
      .name = "logical_and",
      .infer = elementwise::infer_logical,
      .gradient = no_gradient,
      .compile = elementwise::compile_instruction(elementwise::Opcode::kLogicalAnd),
  };
  return op;
}

Tensor logical_and(const Tensor& a, const Tensor& b, SourceLocation where) {
  return make_tensor(logical_and_op(), {a, b}, {}, where);
}
Tensor logical_or(const Tensor& a, const Tensor& b, SourceLocation where) {
  return make_tensor(kLogicalOr, {a, b}, {}, where);
}
Tensor logical_not(const Tensor& a, SourceLocation where) { return make_tensor(kLogicalNot, {a}, {}, where); }

}  // namespace mox
