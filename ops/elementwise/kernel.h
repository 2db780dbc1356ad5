// The kernel of every elementwise op: chooses layouts, then runs the op's program over blocks that stay in
// the first level of cache.
#pragma once

#include <functional>
#include <optional>

#include "ops/elementwise/internal/program.h"
#include "runtime/graph/kernel.h"

namespace mox::elementwise {

// The `compile` of an elementwise Op, and the sign by which a rewrite rule recognises one: the program that
// computes output 0 of the node from its inputs, all of them broadcast to the output's shape.
struct ElementwiseCompile {
  std::function<Program(const Node&)> program;
  Kernel operator()(const KernelRequest& request) const;
};

// For an op that is one instruction.
ElementwiseCompile compile_instruction(Opcode opcode);
// For an op that only copies its input: to a broader shape, to another dtype.
ElementwiseCompile compile_copy();

// The program of a node; nothing if its op is not elementwise.
std::optional<Program> program_of(const Node& node);

// The number type that a node computes with: float32 if it is fused or any input or output is floating, else
// the widest integer.
DType register_type(const Node& node);

}  // namespace mox::elementwise
