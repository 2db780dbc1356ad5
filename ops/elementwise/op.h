// Shape rules that elementwise ops share, and the fused op.
#pragma once

#include <vector>

#include "ops/elementwise/kernel.h"
#include "ops/elementwise/operand.h"
#include "runtime/graph/op.h"

namespace mox::elementwise {

// One float32 input; the output has its type.
std::vector<TensorType> infer_floating_unary(const OpCall& call);
// One float32, int32 or int64 input; the output has its type.
std::vector<TensorType> infer_numeric_unary(const OpCall& call);
// Two inputs of one dtype that broadcast together: float32; or also int32, int64.
std::vector<TensorType> infer_floating_binary(const OpCall& call);
std::vector<TensorType> infer_numeric_binary(const OpCall& call);
// Two inputs of one dtype (float32, int32 or int64; for equality also uint8 and bool); the output is bool.
std::vector<TensorType> infer_ordering(const OpCall& call);
std::vector<TensorType> infer_equality(const OpCall& call);
// One or two bool inputs; the output is bool.
std::vector<TensorType> infer_logical(const OpCall& call);

// The shape that all inputs broadcast to; fails with the op's message if there is none.
Shape broadcast_inputs(const OpCall& call);

// A node of a binary op whose operands may be numbers.
Tensor binary(const Op& op, const Operand& a, const Operand& b, SourceLocation where);

// The op that holds a program in its attributes.
const Op& fused_op();

// A node of fused_op. The program computes in float32: what inputs of other dtypes hold is converted as it is
// read, and the result, whose type is `type`, as it is written.
Tensor fused(const Program& program, std::vector<Tensor> inputs, const TensorType& type,
             SourceLocation where);

}  // namespace mox::elementwise
