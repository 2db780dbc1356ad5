// The compiled form of a plan, shared by the files of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/plan.h"

namespace mox {

enum class Storage { kArena, kVariable, kInput, kConstant, kResult, kGradient };

// One value in one layout: a node's output, a converted copy of it, or a kernel's scratch memory.
struct PlanValue {
  std::string name;
  TensorType type;
  Layout layout;
  Storage storage = Storage::kArena;
  int index = -1;              // which variable, component, constant, result or gradient
  int64_t offset = 0;          // in the arena
  int alias_of = -1;           // the value whose memory this one is; -1 for a value with memory of its own
  int first_instruction = -1;  // the instruction that writes it; -1 if it exists before the run
  int last_instruction = -1;   // the last instruction that reads it
};

struct PlanInstruction {
  std::string op, name;
  std::string attributes;
  Kernel kernel;
  std::vector<int> inputs, outputs;  // indices of values
  int scratch = -1;                  // a value, or none
  bool is_conversion = false;
  int gradient_in_parts = -1;  // the gradient that the kernel hands over in parts, or none
};

// When the listener may be told about a gradient: after this instruction.
struct GradientEvent {
  int instruction;
  size_t gradient;
  bool in_parts = false;  // the instruction hands the gradient over; the listener is not told
};

struct Plan::Impl {
  std::unique_ptr<Graph> graph;
  std::vector<PlanValue> values;
  std::vector<PlanInstruction> instructions;
  std::vector<std::string> variables;  // names
  std::vector<TensorType> components;  // of the batch; DType and shape the plan was compiled for
  std::vector<bool> component_is_used;
  std::vector<Array> constants;
  std::vector<int> results;    // values with storage kResult
  std::vector<int> gradients;  // values, in the order of the request
  std::vector<int> fetches;    // index into results, in the order of the request
  struct AfterStep {
    std::string variable;
    int result;
  };
  std::vector<AfterStep> after_step_values;
  std::vector<GradientEvent> gradient_events;  // sorted by instruction
  bool gradients_in_parts = false;             // CompileOptions::gradients_in_parts
  size_t arena_bytes = 0;
  PlanStatistics statistics;
  std::vector<std::string> fired_rules;  // "conv2d + bias_add: 2"

  // The value whose memory `value` lives in.
  int root(int value) const {
    while (values[value].alias_of >= 0) value = values[value].alias_of;
    return value;
  }
};

}  // namespace mox
