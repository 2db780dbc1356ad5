#include "ops/fusion/elementwise_rule.h"

#include <algorithm>

#include "ops/elementwise/op.h"

namespace mox {
namespace {

using elementwise::Instruction;
using elementwise::Opcode;
using elementwise::Program;

constexpr size_t kMaxInputs = 10;  // streams of memory that are read side by side
// inputs and instructions: what a register file in the first level of cache holds
constexpr int kMaxValues = 32;

// Puts programs together. Until the number of inputs is known, input i is called -1 - i in the operands.
class ProgramBuilder {
 public:
  int input(const Tensor& tensor) {
    const auto found = std::find(inputs_.begin(), inputs_.end(), tensor);
    const int index = found - inputs_.begin();
    if (found == inputs_.end()) inputs_.push_back(tensor);
    return -1 - index;
  }

  // Appends `program` with its inputs bound to values made before; returns its result.
  int append(const Program& program, const std::vector<int>& bound) {
    std::vector<int> values = bound;
    for (Instruction instruction : program.instructions) {
      for (int k = 0; k < elementwise::operand_count(instruction.opcode); ++k) {
        int& operand = instruction.operands[k];
        operand = values[operand];
      }
      values.push_back(instructions_.size());
      instructions_.push_back(instruction);
    }
    return values.back();
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  bool is_small_enough() const {
    return inputs_.size() <= kMaxInputs &&
           static_cast<int>(inputs_.size() + instructions_.size()) <= kMaxValues;
  }

  Program finish() const {
    Program program{.inputs = static_cast<int>(inputs_.size()), .instructions = instructions_};
    for (Instruction& instruction : program.instructions)
      for (int k = 0; k < elementwise::operand_count(instruction.opcode); ++k) {
        int& operand = instruction.operands[k];
        operand = operand < 0 ? -1 - operand : program.inputs + operand;
      }
    return program;
  }

 private:
  std::vector<Tensor> inputs_;
  std::vector<Instruction> instructions_;
};

bool computes_in_float(const Node& node) { return elementwise::register_type(node) == DType::kFloat32; }

// A number that can be part of the program instead of an operand.
bool is_number(const Tensor& tensor) {
  return tensor.node()->op->kind == Op::Kind::kConstant && tensor.shape().elements() == 1 &&
         tensor.dtype() == DType::kFloat32;
}

// Whether `fresh`, which `node` reads as `old`, can be computed inside of what replaces `node`.
bool can_merge(const Node& node, const Tensor& old, const Tensor& fresh, const RewriteView& view) {
  const DType dtype = fresh.dtype();
  const auto uses_here = std::count(node.inputs.begin(), node.inputs.end(), old);
  return elementwise::program_of(*fresh.node()) && computes_in_float(*fresh.node()) &&
         (dtype == DType::kFloat32 || dtype == DType::kBool) && fresh.shape() == node.outputs[0].shape &&
         view.uses_of_mapped(fresh) == uses_here;
}

// What a program reads as `tensor`: a number becomes part of the program.
int operand_of(const Tensor& tensor, ProgramBuilder* builder) {
  if (!is_number(tensor)) return builder->input(tensor);
  const double value = tensor.node()->attributes.get<Array>("value").item();
  return builder->append({.inputs = 0, .instructions = {{.opcode = Opcode::kConstant, .constant = value}}},
                         {});
}

// The node with the inputs of `merge` computed inside.
ProgramBuilder build(const Program& program, const std::vector<Tensor>& fresh,
                     const std::vector<bool>& merge) {
  ProgramBuilder builder;
  std::vector<int> bound;
  for (size_t i = 0; i < fresh.size(); ++i) {
    const size_t first = std::find(fresh.begin(), fresh.end(), fresh[i]) - fresh.begin();
    if (first < i) {
      bound.push_back(bound[first]);
    } else if (merge[i]) {
      const Node& producer = *fresh[i].node();
      std::vector<int> operands;
      for (const Tensor& input : producer.inputs) operands.push_back(operand_of(input, &builder));
      bound.push_back(builder.append(*elementwise::program_of(producer), operands));
    } else {
      bound.push_back(operand_of(fresh[i], &builder));
    }
  }
  builder.append(program, bound);
  return builder;
}

std::optional<std::vector<Tensor>> merge_producers(const Node& node, const RewriteView& view) {
  const std::optional<Program> program = elementwise::program_of(node);
  if (!program || !computes_in_float(node)) return std::nullopt;
  std::vector<Tensor> fresh;
  for (const Tensor& input : node.inputs) fresh.push_back(view.mapped(input));
  std::vector<bool> merge(fresh.size(), false);
  bool any = false;
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!can_merge(node, node.inputs[i], fresh[i], view)) continue;
    merge[i] = true;
    if (build(*program, fresh, merge).is_small_enough()) {
      any = true;
    } else {
      merge[i] = false;
    }
  }
  if (!any) return std::nullopt;
  const ProgramBuilder builder = build(*program, fresh, merge);
  if (builder.inputs().empty()) return std::nullopt;  // numbers only: constant folding does it
  return std::vector{elementwise::fused(builder.finish(), builder.inputs(), node.outputs[0], node.where)};
}

}  // namespace

NamedRule elementwise_chain_rule() { return {"elementwise chain", merge_producers}; }

}  // namespace mox
