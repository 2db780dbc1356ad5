#include "ops/elementwise/op.h"

#include <algorithm>
#include <initializer_list>

#include "runtime/graph/graph.h"

namespace mox::elementwise {
namespace {

void require_dtype(const OpCall& call, std::initializer_list<DType> allowed, std::string_view expected) {
  for (const Tensor& input : call.inputs) {
    call.require(input.dtype() == call.dtype(0), "inputs of one dtype (use cast)");
    call.require(std::find(allowed.begin(), allowed.end(), input.dtype()) != allowed.end(), expected);
  }
}

void require_floating(const OpCall& call) { require_dtype(call, {DType::kFloat32}, "float32"); }
void require_numeric(const OpCall& call) {
  require_dtype(call, {DType::kFloat32, DType::kInt32, DType::kInt64}, "float32, int32 or int64");
}

const Op kElementwise{
    .name = "elementwise",
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      return {
          {call.attributes.get<DType>("dtype"), Shape(call.attributes.get<std::vector<int64_t>>("shape"))}};
    },
    .compile = ElementwiseCompile{[](const Node& node) { return program_from(node.attributes); }},
};

}  // namespace

Shape broadcast_inputs(const OpCall& call) {
  Shape shape = call.shape(0);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    Shape common;
    if (!broadcast_shapes(shape, call.shape(i), &common))
      call.fail("shapes that broadcast together: aligned at the last axis, extents equal or 1");
    shape = common;
  }
  return shape;
}

std::vector<TensorType> infer_floating_unary(const OpCall& call) {
  require_floating(call);
  return {call.type(0)};
}
std::vector<TensorType> infer_numeric_unary(const OpCall& call) {
  require_numeric(call);
  return {call.type(0)};
}
std::vector<TensorType> infer_floating_binary(const OpCall& call) {
  require_floating(call);
  return {{call.dtype(0), broadcast_inputs(call)}};
}
std::vector<TensorType> infer_numeric_binary(const OpCall& call) {
  require_numeric(call);
  return {{call.dtype(0), broadcast_inputs(call)}};
}
std::vector<TensorType> infer_ordering(const OpCall& call) {
  require_numeric(call);
  return {{DType::kBool, broadcast_inputs(call)}};
}
std::vector<TensorType> infer_equality(const OpCall& call) {
  require_dtype(call, {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool},
                "float32, int32, int64, uint8 or bool");
  return {{DType::kBool, broadcast_inputs(call)}};
}
std::vector<TensorType> infer_logical(const OpCall& call) {
  require_dtype(call, {DType::kBool}, "bool (a comparison makes it, or cast)");
  return {{DType::kBool, broadcast_inputs(call)}};
}

Tensor binary(const Op& op, const Operand& a, const Operand& b, SourceLocation where) {
  auto [x, y] = resolve_operands(a, b, op.name, where);
  return make_tensor(op, {x, y}, {}, where);
}

const Op& fused_op() { return kElementwise; }

Tensor fused(const Program& program, std::vector<Tensor> inputs, const TensorType& type,
             SourceLocation where) {
  Attributes attributes{{"shape", std::vector<int64_t>(type.shape.begin(), type.shape.end())},
                        {"dtype", type.dtype}};
  put_program(program, &attributes);
  return Tensor(&make_node(kElementwise, std::move(inputs), std::move(attributes), where), 0);
}

}  // namespace mox::elementwise
