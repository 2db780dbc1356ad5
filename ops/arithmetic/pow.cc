#include <limits>
#include <optional>

#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"

namespace mox {
namespace {

// The number that a tensor is known to be.
std::optional<double> constant_number(const Tensor& x) {
  const Node& node = *x.node();
  if (node.op->kind != Op::Kind::kConstant || x.shape().elements() != 1) return std::nullopt;
  return node.attributes.get<Array>("value").item();
}

// x^(y-1); the number y-1 is computed here where y is one, so that pow sees it.
Tensor power_below(const Tensor& x, const Tensor& y) {
  const auto number = constant_number(y);
  return number ? pow(x, *number - 1) : pow(x, y - 1);
}

const Op kPow{
    .name = "pow",
    .infer = elementwise::infer_floating_binary,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      const Tensor &x = call.input(0), &y = call.input(1), &g = call.gradient();
      const auto number = constant_number(y);
      if (number == 0.0) return {Tensor(), Tensor()};  // x^0 is 1, for 0 as well, where 0 x^-1 is no number
      if (number) return {sum_to(g * (y * power_below(x, y)), x.shape()), Tensor()};
      // 0 x^-1 is 0 where 1/x is a number, and has derivatives; where it is none another base does as well.
      const Tensor has_reciprocal = greater(abs(x), std::numeric_limits<float>::min());
      const Tensor base = select(logical_and(equal(y, 0), logical_not(has_reciprocal)), 1, x);
      const Tensor by_x = sum_to(g * (y * power_below(base, y)), x.shape());
      const Tensor is_positive = greater(x, 0);
      const Tensor logarithm = log(select(is_positive, x, 1));
      return {by_x, sum_to(select(is_positive, g * call.output() * logarithm, 0), y.shape())};
    },
    .compile = elementwise::compile_instruction(elementwise::Opcode::kPow),
};

// Of -0 and of -infinity the root is -0 and no number, but the power 0 and infinity.
Tensor power_of_half(const Tensor& x, SourceLocation where) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return sqrt(add(select(equal(x, -kInfinity), kInfinity, x, where), 0.0f, where), where);
}

}  // namespace

Tensor pow(const Operand& x, const Operand& y, SourceLocation where) {
  auto [base, exponent] = resolve_operands(x, y, kPow.name, where);
  if (const auto number = constant_number(exponent); number && exponent.shape().rank() == 0) {
    if (base.dtype() == DType::kFloat32 && *number == 1) return base;
    if (*number == 2) return square(base, where);
    if (*number == 0.5) return power_of_half(base, where);
    if (*number == -1) return reciprocal(base, where);
  }
  return make_tensor(kPow, {base, exponent}, {}, where);
}

}  // namespace mox
