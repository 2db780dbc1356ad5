#include "ops/comparison.h"

#include "ops/internal/elementwise_op.h"

namespace mox {
namespace {

const Op kGreater{
    .name = "greater",
    .infer = elementwise::infer_ordering,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kGreater),
};
const Op kGreaterEqual{
    .name = "greater_equal",
    .infer = elementwise::infer_ordering,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kGreaterEqual),
};
const Op kLess{
    .name = "less",
    .infer = elementwise::infer_ordering,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kLess),
};
const Op kLessEqual{
    .name = "less_equal",
    .infer = elementwise::infer_ordering,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kLessEqual),
};
const Op kEqual{
    .name = "equal",
    .infer = elementwise::infer_equality,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kEqual),
};
const Op kNotEqual{
    .name = "not_equal",
    .infer = elementwise::infer_equality,
    .compile = elementwise::compile_instruction(elementwise::Opcode::kNotEqual),
};

}  // namespace

Tensor greater(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kGreater, a, b, where);
}
Tensor greater_equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kGreaterEqual, a, b, where);
}
Tensor less(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kLess, a, b, where);
}
Tensor less_equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kLessEqual, a, b, where);
}
Tensor equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kEqual, a, b, where);
}
Tensor not_equal(const Operand& a, const Operand& b, SourceLocation where) {
  return elementwise::binary(kNotEqual, a, b, where);
}

}  // namespace mox
