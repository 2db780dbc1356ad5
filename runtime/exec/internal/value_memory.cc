#include "runtime/exec/internal/value_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/exec/internal/memory_plan.h"

namespace mox {
namespace {

// Whether every place at which `instruction` reads the memory `root` is one that output `output` may
// overwrite: a kernel that may run in place of its first input may still read its second one in another
// order, and both can be one value.
bool may_overwrite(const Plan::Impl& plan, const PlanInstruction& instruction, int output, int root) {
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const std::pair<int, int> pair{output, static_cast<int>(i)};
    if (plan.root(instruction.inputs[i]) == root &&
        std::find(instruction.kernel.in_place.begin(), instruction.kernel.in_place.end(), pair) ==
            instruction.kernel.in_place.end())
      return false;
  }
  return true;
}

// The most bytes that blocks need at one instruction, and the first instruction at which they do.
std::pair<size_t, int> most_at_once(const std::vector<MemoryBlock>& blocks, size_t instructions) {
  std::vector<int64_t> change(instructions + 1, 0);
  for (const MemoryBlock& block : blocks) {
    change[block.first_instruction] += block.bytes;
    if (static_cast<size_t>(block.last_instruction) < instructions)
      change[block.last_instruction + 1] -= static_cast<int64_t>(block.bytes);
  }
  std::pair<size_t, int> most{0, 0};
  int64_t live = 0;
  for (size_t instruction = 0; instruction < instructions; ++instruction) {
    live += change[instruction];
    if (static_cast<size_t>(live) > most.first)
      most = {static_cast<size_t>(live), static_cast<int>(instruction)};
  }
  return most;
}

}  // namespace

// Not the memory of gradients, which are used behind their last instruction.
void share_in_place(Plan::Impl& plan) {
  std::set<int> gradients;
  for (int gradient : plan.gradients) gradients.insert(plan.root(gradient));
  for (size_t s = 0; s < plan.instructions.size(); ++s) {
    PlanInstruction& instruction = plan.instructions[s];
    std::set<int> taken;  // an input's memory goes to one output at most
    for (auto [output_index, input_index] : instruction.kernel.in_place) {
      const int output = instruction.outputs[output_index];
      const int input = plan.root(instruction.inputs[input_index]);
      PlanValue& to = plan.values[output];
      PlanValue& from = plan.values[input];
      if (to.alias_of >= 0 || to.storage != Storage::kArena || from.storage != Storage::kArena) continue;
      if (gradients.contains(input)) continue;
      if (from.last_instruction != static_cast<int>(s) || to.layout.bytes() != from.layout.bytes()) continue;
      if (!may_overwrite(plan, instruction, output_index, input) || !taken.insert(input).second) continue;
      to.alias_of = input;
      from.last_instruction = to.last_instruction;
      if (gradients.contains(output)) gradients.insert(input);  // whose memory the gradient lies in now
    }
  }
}

void place_in_arena(Plan::Impl& plan) {
  std::vector<MemoryBlock> blocks;
  std::vector<size_t> owners;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const PlanValue& value = plan.values[v];
    if (value.storage != Storage::kArena || value.alias_of >= 0) continue;
    blocks.push_back({value.layout.bytes(), value.first_instruction, value.last_instruction});
    owners.push_back(v);
    plan.statistics.unplanned_bytes += value.layout.bytes();
  }
  plan.arena_bytes = plan_memory(blocks);
  for (size_t i = 0; i < blocks.size(); ++i) plan.values[owners[i]].offset = blocks[i].offset;
  plan.statistics.arena_bytes = plan.arena_bytes;
  std::tie(plan.statistics.live_bytes, plan.statistics.live_instruction) =
      most_at_once(blocks, plan.instructions.size());
}

void schedule_gradient_events(Plan::Impl& plan, const std::vector<std::string>& gradient_variables) {
  std::map<std::string, int> variable_read;
  for (const PlanValue& value : plan.values)
    if (value.storage == Storage::kVariable && value.alias_of < 0)
      variable_read[plan.variables[value.index]] = value.last_instruction;
  std::map<int, int> memory_read;  // by the value that owns it
  for (size_t s = 0; s < plan.instructions.size(); ++s)
    for (int input : plan.instructions[s].inputs) memory_read[plan.root(input)] = static_cast<int>(s);
  for (size_t g = 0; g < plan.gradients.size(); ++g) {
    const int root = plan.root(plan.gradients[g]);
    int instruction = plan.values[root].first_instruction;
    if (auto read = variable_read.find(gradient_variables[g]); read != variable_read.end())
      instruction = std::max(instruction, read->second);
    if (auto read = memory_read.find(root); read != memory_read.end())
      instruction = std::max(instruction, read->second);
    plan.gradient_events.push_back({instruction, g});
  }
  std::stable_sort(
      plan.gradient_events.begin(), plan.gradient_events.end(),
      [](const GradientEvent& a, const GradientEvent& b) { return a.instruction < b.instruction; });
}

void hand_over_in_parts(Plan::Impl& plan, const std::vector<std::string>& gradient_variables) {
  std::vector<int> gradients_in(plan.values.size(), 0);  // by the value that owns the memory
  for (const int gradient : plan.gradients) ++gradients_in[plan.root(gradient)];
  std::vector<bool> is_read(plan.values.size(), false);
  for (const PlanInstruction& instruction : plan.instructions)
    for (const int input : instruction.inputs) is_read[plan.root(input)] = true;
  for (GradientEvent& event : plan.gradient_events) {
    const int value = plan.root(plan.gradients[event.gradient]);
    PlanInstruction& instruction = plan.instructions[plan.values[value].first_instruction];
    // The instruction that computes the gradient may be the last that reads the variable: it would read what
    // is updated meanwhile.
    const auto is_variable = [&](int input) {
      const PlanValue& root = plan.values[plan.root(input)];
      return root.storage == Storage::kVariable &&
             plan.variables[root.index] == gradient_variables[event.gradient];
    };
    if (!instruction.kernel.instantiate_in_parts || instruction.outputs != std::vector<int>{value} ||
        event.instruction != plan.values[value].first_instruction ||
        std::ranges::any_of(instruction.inputs, is_variable) || gradients_in[value] != 1 || is_read[value])
      continue;
    event.in_parts = true;
    instruction.gradient_in_parts = static_cast<int>(event.gradient);
    instruction.kernel.instantiate = instruction.kernel.instantiate_in_parts;
    instruction.kernel.implementation = instruction.kernel.implementation_in_parts;
    instruction.kernel.has_bits_by_threads = false;
  }
}

void let_gradients_share_memory(Plan::Impl& plan) {
  for (const GradientEvent& event : plan.gradient_events) {
    if (event.in_parts) continue;
    const int root = plan.root(plan.gradients[event.gradient]);
    PlanValue& value = plan.values[root];
    value.storage = Storage::kArena;
    value.last_instruction = event.instruction;
  }
}

}  // namespace mox
