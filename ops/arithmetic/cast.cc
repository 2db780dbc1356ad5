#include "ops/arithmetic/arithmetic.h"
#include "ops/elementwise/op.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using elementwise::Opcode;
using elementwise::Program;

}  // namespace

const Op& cast_op() {
  static const Op op{
      .name = "cast",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        return {{call.attributes.get<DType>("dtype"), call.shape(0)}};
      },
      .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
        const Tensor& x = call.input(0);
        if (!is_floating(x.dtype()) || !is_floating(call.output().dtype())) return {Tensor()};
        return {cast(call.gradient(), x.dtype())};
      },
      // The kernel converts where it reads and writes. Only a truth value has to be made one, in case the
      // cast becomes the middle of a fused chain.
      .compile = elementwise::ElementwiseCompile{[](const Node& node) -> Program {
        if (node.outputs[0].dtype != DType::kBool) return {.inputs = 1, .instructions = {}};
        return {.inputs = 1,
                .instructions = {{.opcode = Opcode::kConstant, .constant = 0},
                                 {.opcode = Opcode::kNotEqual, .operands = {0, 1, -1}}}};
      }},
  };
  return op;
}

Tensor cast(const Tensor& x, DType dtype, SourceLocation where) {
  if (x.defined() && x.dtype() == dtype) return x;
  return make_tensor(cast_op(), {x}, {{"dtype", dtype}}, where);
}

}  // namespace mox
