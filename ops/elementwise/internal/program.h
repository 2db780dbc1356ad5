// What an elementwise op computes, as data: a list of instructions on values, in single-assignment form. One
// program stands for one op (one instruction, mostly) or for a fused chain of them; the same
// kernel runs both.
//
// Values are numbered: 0 .. inputs-1 are the inputs, inputs + i is what instruction i computes; the last
// value is the result. Truth values are the numbers 1 and 0 inside a program; bool exists only where a tensor
// is read or written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/attributes.h"

namespace mox::elementwise {

enum class Opcode : int64_t {
  kConstant,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMaximum,
  kMinimum,
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kLog,
  kSigmoid,
  kTanh,
  kSoftplus,
  kRelu,
  kLeakyRelu,  // of (x, slope)
  kFloor,
  kRound,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kLogicalAnd,
  kLogicalOr,
  kLogicalNot,
  kSelect,  // of (condition, a, b)
  kCount,
};

std::string_view name_of(Opcode opcode);
int operand_count(Opcode opcode);

struct Instruction {
  Opcode opcode = Opcode::kConstant;
  std::array<int, 3> operands = {-1, -1, -1};
  double constant = 0;  // of kConstant
};

struct Program {
  int inputs = 0;
  std::vector<Instruction> instructions;

  int values() const { return inputs + static_cast<int>(instructions.size()); }
  int result() const { return values() - 1; }
};

// The program of an op that is one instruction on its inputs, in their order.
Program single_instruction(Opcode opcode);

// Programs as attributes of a node ("inputs", "code", "constants", and "chain" for the reader of a
// plan), and back.
void put_program(const Program& program, Attributes* attributes);
Program program_from(const Attributes& attributes);

// The result where it does not depend on what is unknown: `known[i]` is the value of all elements of input i.
std::optional<float> constant_result(const Program& program, std::span<const std::optional<float>> known);

}  // namespace mox::elementwise
