#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/random.h"
#include "runtime/exec/internal/plan_impl.h"
#include "runtime/exec/thread_dependence.h"

namespace mox {
namespace {

std::string value_text(const Plan::Impl& plan, int index) {
  const PlanValue& value = plan.values[index];
  return fmt::format("{} {}", to_string(value.type), value.layout.to_string());
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 3) bytes /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

std::string memory_text(const Plan::Impl& plan) {
  const PlanStatistics& s = plan.statistics;
  std::string text = "memory:\n";
  const auto line = [&](std::string_view what, size_t bytes, const std::string& remark = "") {
    text +=
        fmt::format("  {:<10} {:>10}{}{}\n", what, human_bytes(bytes), remark.empty() ? "" : "  ", remark);
  };
  std::string remark = fmt::format("{} without sharing", human_bytes(s.unplanned_bytes));
  if (!plan.instructions.empty())
    remark += fmt::format("; {} live at once, first in instruction {}", human_bytes(s.live_bytes),
                          s.live_instruction);
  line("arena", s.arena_bytes, remark);
  line("variables", s.variable_bytes);
  line("gradients", s.gradient_bytes,
       plan.gradients_in_parts ? "in the arena: each is used as soon as it is final" : "");
  line("constants", s.constant_bytes);
  line("results", s.result_bytes);
  return text;
}

std::string thread_text(const Plan& plan) {
  const ThreadDependence dependence = thread_dependence_of(plan);
  if (dependence.is_none()) return "bits: the same with any number of threads\n";
  const double all = plan.statistics().floating_point_operations;
  return fmt::format(
      "bits: others with another number of threads, by the {} instruction(s) marked * ({:.2g} % of the "
      "FLOP)\n",
      dependence.instructions, all > 0 ? 100 * dependence.floating_point_operations / all : 0);
}

}  // namespace

std::string Plan::describe() const {
  struct Row {
    std::string op, output, implementation, megaflops, bytes, name;
  };
  std::vector<Row> rows{{"op", "output", "implementation", "MFLOP", "bytes", "name"}};
  for (const PlanInstruction& instruction : impl_->instructions) {
    size_t bytes = 0;
    for (int input : instruction.inputs) bytes += impl_->values[input].layout.bytes();
    for (int output : instruction.outputs) bytes += impl_->values[output].layout.bytes();
    std::string how = instruction.kernel.implementation;
    if (instruction.kernel.has_bits_by_threads) how += " *";
    if (instruction.is_conversion) how += " (" + instruction.attributes + ")";
    rows.push_back({instruction.op, value_text(*impl_, instruction.outputs[0]), std::move(how),
                    fmt::format("{:.2f}", instruction.kernel.floating_point_operations / 1e6),
                    human_bytes(bytes), instruction.name});
  }
  auto widest = [&](std::string Row::*column) {
    size_t width = 0;
    for (const Row& row : rows) width = std::max(width, (row.*column).size());
    return width;
  };
  const size_t op = widest(&Row::op), output = widest(&Row::output),
               implementation = widest(&Row::implementation);
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    text += fmt::format("{:>4}  {:<{}}  {:<{}}  {:<{}}  {:>9}  {:>9}  {}\n",
                        i == 0 ? "#" : std::to_string(i - 1), row.op, op, row.output, output,
                        row.implementation, implementation, row.megaflops, row.bytes, row.name);
  }
  const PlanStatistics& s = impl_->statistics;
  text += fmt::format("fusions: {}\n", impl_->fired_rules.empty() ? "none" : "");
  for (const std::string& rule : impl_->fired_rules) text += "  " + rule + "\n";
  text +=
      fmt::format("{} instructions ({} layout conversions), {:.2f} GFLOP, compiled in {:.0f} ms\n",
                  s.instructions, s.conversions, s.floating_point_operations / 1e9, s.compile_seconds * 1e3);
  return text + thread_text(*this) + memory_text(*impl_);
}

uint64_t Plan::fingerprint() const {
  uint64_t hash = stable_hash("moxing plan 1");
  // A value is known by its number and the memory it lives in, so that the wiring counts and not
  // only the types.
  auto value_identity = [this](int index) {
    const PlanValue& root = impl_->values[impl_->root(index)];
    const bool is_stored = root.storage == Storage::kVariable || root.storage == Storage::kInput;
    return fmt::format("{}:{} {}{}", index, value_text(*impl_, index), static_cast<int>(root.storage),
                       is_stored ? root.name : "");
  };
  for (const Array& constant : impl_->constants) {
    const auto bytes = constant.as_bytes();
    hash = mix_hash(hash, stable_hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  for (const PlanInstruction& instruction : impl_->instructions) {
    std::string line = instruction.op + ' ' + instruction.name + ' ' + instruction.attributes + ' ' +
                       instruction.kernel.implementation;
    for (int input : instruction.inputs) line += ' ' + value_identity(input);
    for (int output : instruction.outputs) line += " > " + value_identity(output);
    hash = mix_hash(hash, stable_hash(line));
  }
  for (const std::vector<int>* kept : {&impl_->results, &impl_->gradients})
    for (int value : *kept) hash = mix_hash(hash, stable_hash(value_identity(value)));
  for (const Plan::Impl::AfterStep& after : impl_->after_step_values)
    hash = mix_hash(hash, stable_hash(fmt::format("{} = {}", after.variable, after.result)));
  return hash;
}

}  // namespace mox
