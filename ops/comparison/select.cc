#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "ops/shape/shape.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {}  // namespace

const Op& select_op() {
  static const Op op{
      .name = "select",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        call.require(call.dtype(0) == DType::kBool,
                     "a condition of dtype bool (a comparison makes it, or cast)");
        const DType dtype = call.dtype(1);
        call.require(dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt64,
                     "a choice between float32, int32 or int64");
        call.require(call.dtype(2) == dtype, "two operands of one dtype to choose from (use cast)");
        return {{dtype, elementwise::broadcast_inputs(call)}};
      },
      .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
        const Tensor &condition = call.input(0), &g = call.gradient();
        return {Tensor(), sum_to(select(condition, g, 0), call.input(1).shape()),
                sum_to(select(condition, 0, g), call.input(2).shape())};
      },
      .compile = elementwise::compile_instruction(elementwise::Opcode::kSelect),
  };
  return op;
}

Tensor select(const Tensor& condition, const Operand& a, const Operand& b, SourceLocation where) {
  auto [x, y] = resolve_operands(a, b, select_op().name, where);
  return make_tensor(select_op(), {condition, x, y}, {}, where);
}

}  // namespace mox
