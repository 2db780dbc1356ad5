#include "ops/comparison/comparison.h"

#include "ops/elementwise/op.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

const Op kLess{
    .name = "less",
    .infer = elementwise::infer_ordering,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kLess),
};
const Op kEqual{
    .name = "equal",
    .infer = elementwise::infer_equality,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kEqual),
};
const Op kNotEqual{
    .name = "not_equal",
    .infer = elementwise::infer_equality,
    .gradient = no_gradient,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kNotEqual),
};

}  // namespace

const Op& less_equal_op() {
  static const Op op{
      .name = "less_equal",
      .infer = elementwise::infer_ordering,
      .gradient = no_gradient,
      .compile = elementwise::compile_instruction(elementwise::Opcode::kLessEqual),
  };
  return op;
}

const Op& greater_equal_op() {
  static const Op op{
      .name = "greater_equal",
      .infer = elementwise::infer_ordering,
      .gradient = no_gradient,
      .compile = elementwise::compile_instruction(elementwise::Opcode::kGreaterEqual),
  };
  return op;
}

const Op& greater_op() {
  static const Op op{
      .name = "greater",
      .infer = elementwise::infer_ordering,
      .gradient = no_gradient,
      .compile = elementwise::compile_instruction(elementwise::Opcode::kGreater),
  };
  return op;
}

Tensor greater(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(greater_op(), a, b, where);
}
Tensor greater_equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(greater_equal_op(), a, b, where);
}
Tensor less(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kLess, a, b, where);
}
Tensor less_equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(less_equal_op(), a, b, where);
}
Tensor equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kEqual, a, b, where);
}
Tensor not_equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kNotEqual, a, b, where);
}

}  // namespace mox
