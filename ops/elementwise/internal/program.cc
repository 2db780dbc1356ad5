#include "ops/elementwise/internal/program.h"

#include "ops/elementwise/internal/functions.h"
#include "runtime/base/error.h"

namespace mox::elementwise {
namespace {

struct OpcodeFacts {
  std::string_view name;
  int operands;
};

constexpr OpcodeFacts kFacts[] = {
    {"constant", 0},      {"add", 2},        {"sub", 2},         {"mul", 2},    {"div", 2},
    {"pow", 2},           {"maximum", 2},    {"minimum", 2},     {"neg", 1},    {"abs", 1},
    {"sign", 1},          {"square", 1},     {"sqrt", 1},        {"rsqrt", 1},  {"reciprocal", 1},
    {"exp", 1},           {"log", 1},        {"sigmoid", 1},     {"tanh", 1},   {"softplus", 1},
    {"relu", 1},          {"leaky_relu", 2}, {"floor", 1},       {"round", 1},  {"greater", 2},
    {"greater_equal", 2}, {"less", 2},       {"less_equal", 2},  {"equal", 2},  {"not_equal", 2},
    {"logical_and", 2},   {"logical_or", 2}, {"logical_not", 1}, {"select", 3},
};
static_assert(std::size(kFacts) == static_cast<size_t>(Opcode::kCount));

const OpcodeFacts& facts(Opcode opcode) { return kFacts[static_cast<size_t>(opcode)]; }

}  // namespace

std::string_view name_of(Opcode opcode) { return facts(opcode).name; }
int operand_count(Opcode opcode) { return facts(opcode).operands; }

Program single_instruction(Opcode opcode) {
  Program program{.inputs = operand_count(opcode), .instructions = {{.opcode = opcode}}};
  for (int i = 0; i < program.inputs; ++i) program.instructions[0].operands[i] = i;
  return program;
}

void put_program(const Program& program, Attributes* attributes) {
  std::vector<int64_t> code;
  std::vector<double> constants;
  std::string chain;
  for (const Instruction& instruction : program.instructions) {
    code.push_back(static_cast<int64_t>(instruction.opcode));
    for (int operand : instruction.operands) code.push_back(operand);
    constants.push_back(instruction.constant);
    if (instruction.opcode == Opcode::kConstant) continue;
    if (!chain.empty()) chain += '+';
    chain += name_of(instruction.opcode);
  }
  attributes->set("chain", std::move(chain));
  attributes->set("inputs", int64_t{program.inputs});
  attributes->set("code", std::move(code));
  attributes->set("constants", std::move(constants));
}

Program program_from(const Attributes& attributes) {
  const auto& code = attributes.get<std::vector<int64_t>>("code");
  const auto& constants = attributes.get<std::vector<double>>("constants");
  MOX_ASSERT(code.size() == 4 * constants.size(), "an instruction is an opcode and three operands");
  Program program{.inputs = static_cast<int>(attributes.get<int64_t>("inputs")), .instructions = {}};
  for (size_t i = 0; i < constants.size(); ++i) {
    Instruction instruction{.opcode = static_cast<Opcode>(code[4 * i]), .constant = constants[i]};
    for (size_t k = 0; k < 3; ++k) instruction.operands[k] = static_cast<int>(code[4 * i + 1 + k]);
    program.instructions.push_back(instruction);
  }
  return program;
}

std::optional<float> constant_result(const Program& program, std::span<const std::optional<float>> known) {
  using Register = std::array<float, kLane>;
  std::vector<std::optional<float>> values(known.begin(), known.end());
  for (const Instruction& instruction : program.instructions) {
    if (instruction.opcode == Opcode::kConstant) {
      values.push_back(static_cast<float>(instruction.constant));
      continue;
    }
    alignas(64) Register operands[3] = {};
    bool all_known = true, zero_factor = false;
    for (int i = 0; i < operand_count(instruction.opcode); ++i) {
      const auto& value = values[instruction.operands[i]];
      all_known &= value.has_value();
      zero_factor |= value == 0.0f && instruction.opcode == Opcode::kMul;
      operands[i].fill(value.value_or(0.0f));
    }
    if (all_known) {
      alignas(64) Register result;
      block_function<float>(instruction.opcode)(result.data(), operands[0].data(), operands[1].data(),
                                                operands[2].data(), kLane);
      values.push_back(result[0]);
    } else {
      values.push_back(zero_factor ? std::optional(0.0f) : std::nullopt);
    }
  }
  return values.back();
}

}  // namespace mox::elementwise
