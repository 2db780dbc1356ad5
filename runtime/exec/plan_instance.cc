#include "runtime/exec/plan_instance.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/seconds.h"
#include "runtime/exec/internal/plan_impl.h"
#include "runtime/interruption/interruption.h"

namespace mox {
namespace {

constexpr int64_t kGradientAlignment = 16;  // elements: 64 bytes

struct BoundInstruction {
  KernelFunction run;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;
};

// The parts of one gradient.
class PartsOf : public PartListener {
 public:
  PartsOf(const GradientPartListener& listener, size_t gradient) : listener_(listener), gradient_(gradient) {}
  void expect(int64_t first, int64_t count) const override { listener_.expect(gradient_, first, count); }
  void take(int64_t first, std::span<const float> values) const override {
    listener_.take(gradient_, first, values);
  }

 private:
  const GradientPartListener& listener_;
  size_t gradient_;
};

// A pointer that follows the batch's memory from run to run.
struct ComponentPointer {
  size_t instruction, input, component;
};

}  // namespace

struct PlanInstance::Impl {
  std::shared_ptr<const Plan> plan;
  const Team* team;
  std::shared_ptr<std::byte> arena;
  std::vector<Array> variables, results, gradients;
  Array gradient_block;
  std::vector<int64_t> gradient_offsets;
  std::vector<std::pair<Array, size_t>> after_step_values;  // the variable, the result
  std::vector<BoundInstruction> instructions;
  std::vector<ComponentPointer> component_pointers;
  bool profiling = false;
  std::vector<double> seconds;
  int64_t profiled_runs = 0;

  const Plan::Impl& compiled() const { return plan->impl(); }
  // What the constructor does, in this order: each needs the memory of those before it.
  void allocate_arena();
  void allocate_results();
  void bind_variables(const std::function<Array(std::string_view)>& variable);
  void allocate_gradient_block();
  void place_gradients();
  void require_types_of_variables() const;
  void bind_instructions();

  std::byte* memory_of(int value);  // null of what a run brings, and of a gradient in parts
  BoundInstruction bound(const PlanInstruction& instruction);
};

void PlanInstance::Impl::allocate_arena() {
  try {
    arena = allocate_aligned(compiled().arena_bytes, "what a step computes and keeps");
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("{}: use a smaller batch_size (eval_batch_size, where no step trains), more "
                    "logical_replicas for the same batch, or recompute=normalisation",
                    error.what()));
  }
}

void PlanInstance::Impl::bind_variables(const std::function<Array(std::string_view)>& variable) {
  for (const std::string& name : compiled().variables) variables.push_back(variable(name));
  for (const auto& after : compiled().after_step_values)
    after_step_values.emplace_back(variable(after.variable), after.result);
}

void PlanInstance::Impl::allocate_results() {
  try {
    for (int value : compiled().results) results.emplace_back(compiled().values[value].type);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("what a step gives: {}: put less into output_info and log_info, fetch less in hooks, or "
                    "use a smaller batch_size (eval_batch_size, where no step trains)",
                    error.what()));
  }
}

void PlanInstance::Impl::allocate_gradient_block() {
  int64_t elements = 0;
  for (const int gradient : compiled().gradients) {
    const TensorType& type = compiled().values[gradient].type;
    MOX_ASSERT(type.dtype == DType::kFloat32, "a gradient is of the type of what is trained, float32");
    gradient_offsets.push_back(elements);
    if (compiled().gradients_in_parts) continue;
    elements += (type.shape.elements() + kGradientAlignment - 1) / kGradientAlignment * kGradientAlignment;
  }
  try {
    gradient_block = Array(DType::kFloat32, {elements});
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(
        fmt::format("the gradients of all trained variables: {}: lower num_devices, as each device has its "
                    "own, train fewer variables (ModelSpec::var_scopes), or make the model smaller",
                    error.what()));
  }
}

// Those that come whole: where a kernel leaves them, in the arena or in the block.
void PlanInstance::Impl::place_gradients() {
  std::vector<bool> in_parts(compiled().gradients.size());
  for (const GradientEvent& event : compiled().gradient_events) in_parts[event.gradient] = event.in_parts;
  gradients.resize(compiled().gradients.size());
  for (size_t g = 0; g < gradients.size(); ++g) {
    if (in_parts[g]) continue;
    const TensorType& type = compiled().values[compiled().gradients[g]].type;
    const PlanValue& root = compiled().values[compiled().root(compiled().gradients[g])];
    if (root.storage == Storage::kArena) {
      gradients[g] = Array(type, {arena, arena.get() + root.offset});
    } else {
      const Array rest = gradient_block.rows(gradient_offsets[g], gradient_block.elements());
      gradients[g] = rest.rows(0, type.shape.elements()).reshaped(type.shape);
    }
  }
}

void PlanInstance::Impl::require_types_of_variables() const {
  for (const PlanValue& value : compiled().values)
    if (value.storage == Storage::kVariable && value.alias_of < 0)
      MOX_ASSERT(variables[value.index].type() == value.type,
                 fmt::format("the stored variable '{}' has the graph's type", value.name));
}

std::byte* PlanInstance::Impl::memory_of(int value) {
  const PlanValue& root = compiled().values[compiled().root(value)];
  const size_t index = root.index;
  switch (root.storage) {
    case Storage::kArena:
      return arena.get() + root.offset;
    case Storage::kVariable:
      return variables[index].data();
    case Storage::kInput:
      return nullptr;
    case Storage::kConstant:
      return const_cast<std::byte*>(compiled().constants[index].data());  // inputs only
    case Storage::kResult:
      return results[index].data();
    case Storage::kGradient:
      return gradients[index].defined() ? gradients[index].data() : nullptr;
  }
  return nullptr;
}

BoundInstruction PlanInstance::Impl::bound(const PlanInstruction& instruction) {
  BoundInstruction result;
  for (int input : instruction.inputs) result.inputs.push_back(memory_of(input));
  for (int output : instruction.outputs) result.outputs.push_back(memory_of(output));
  if (instruction.scratch >= 0) result.scratch = memory_of(instruction.scratch);
  result.run = instruction.kernel.instantiate();
  return result;
}

void PlanInstance::Impl::bind_instructions() {
  for (size_t s = 0; s < compiled().instructions.size(); ++s) {
    internal::throw_if_interrupted();
    const PlanInstruction& instruction = compiled().instructions[s];
    instructions.push_back(bound(instruction));
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const PlanValue& root = compiled().values[compiled().root(instruction.inputs[i])];
      if (root.storage == Storage::kInput)
        component_pointers.push_back({s, i, static_cast<size_t>(root.index)});
    }
  }
  seconds.assign(instructions.size(), 0.0);
}

PlanInstance::PlanInstance(std::shared_ptr<const Plan> plan, const Team& team,
                           const std::function<Array(std::string_view)>& variable)
    : impl_(std::make_unique<Impl>()) {
  impl_->plan = std::move(plan);
  impl_->team = &team;
  impl_->allocate_arena();
  impl_->allocate_results();
  impl_->bind_variables(variable);
  impl_->allocate_gradient_block();
  impl_->place_gradients();
  impl_->require_types_of_variables();
  impl_->bind_instructions();
}

PlanInstance::~PlanInstance() = default;

void PlanInstance::run(const StepInputs& inputs) {
  run(inputs, [](size_t) {});
}

void PlanInstance::run(const StepInputs& inputs, const GradientListener& listener) {
  MOX_ASSERT(!impl_->plan->impl().gradients_in_parts,
             "a plan with gradients in parts is run with a part listener");
  run_instructions(inputs, listener, nullptr);
}

void PlanInstance::run(const StepInputs& inputs, const GradientListener& listener,
                       const GradientPartListener& part_listener) {
  MOX_ASSERT(impl_->plan->impl().gradients_in_parts,
             "only a plan with gradients in parts has a part listener");
  run_instructions(inputs, listener, &part_listener);
}

void PlanInstance::run_instructions(const StepInputs& inputs, const GradientListener& listener,
                                    const GradientPartListener* part_listener) {
  Impl& self = *impl_;
  const Plan::Impl& compiled = self.plan->impl();
  for (size_t c = 0; c < compiled.components.size(); ++c) {
    if (!compiled.component_is_used[c]) continue;
    if (c >= inputs.components.size() || inputs.components[c].type() != compiled.components[c])
      throw InvalidArgument(fmt::format(
          "component {} of the batch must be {}, got {}", c, to_string(compiled.components[c]),
          c < inputs.components.size() ? to_string(inputs.components[c].type()) : "no such component"));
  }
  for (const ComponentPointer& p : self.component_pointers)
    self.instructions[p.instruction].inputs[p.input] = inputs.components[p.component].data();

  const EnteredTeam entered(*self.team);
  using Clock = std::chrono::steady_clock;
  Clock::time_point before = self.profiling ? Clock::now() : Clock::time_point();
  auto event = compiled.gradient_events.begin();
  const auto last_event = compiled.gradient_events.end();
  for (size_t s = 0; s < self.instructions.size(); ++s) {
    BoundInstruction& instruction = self.instructions[s];
    const int in_parts = compiled.instructions[s].gradient_in_parts;
    if (in_parts < 0) {
      instruction.run({instruction.inputs, instruction.outputs, instruction.scratch, *self.team, inputs.seed,
                       inputs.step});
    } else {
      const PartsOf parts(*part_listener, in_parts);
      instruction.run({instruction.inputs, instruction.outputs, instruction.scratch, *self.team, inputs.seed,
                       inputs.step, &parts});
    }
    if (self.profiling) {
      const auto now = Clock::now();
      self.seconds[s] += in_seconds(now - before);
      before = now;
    }
    for (; event != last_event && event->instruction == static_cast<int>(s); ++event) {
      if (!event->in_parts) listener(event->gradient);
      if (self.profiling) before = Clock::now();
    }
  }
  if (self.profiling) ++self.profiled_runs;
}

const Array& PlanInstance::fetched(size_t index) const {
  return impl_->results[impl_->plan->impl().fetches.at(index)];
}
const Array& PlanInstance::gradient(size_t index) const { return impl_->gradients.at(index); }

std::span<float> PlanInstance::gradient_block() { return impl_->gradient_block.values<float>(); }
int64_t PlanInstance::gradient_offset(size_t index) const { return impl_->gradient_offsets.at(index); }

size_t PlanInstance::after_step_count() const { return impl_->after_step_values.size(); }
const Array& PlanInstance::after_step_value(size_t index) const {
  return impl_->results[impl_->after_step_values.at(index).second];
}
Array PlanInstance::after_step_variable(size_t index) const {
  return impl_->after_step_values.at(index).first;
}

void PlanInstance::take_after_step_values() {
  for (auto& [variable, result] : impl_->after_step_values)
    std::memcpy(variable.data(), impl_->results[result].data(), variable.bytes());
}

void PlanInstance::set_profiling(bool on) { impl_->profiling = on; }

std::vector<KernelTime> PlanInstance::profile() const {
  const double runs = std::max<int64_t>(impl_->profiled_runs, 1);
  std::vector<KernelTime> times;
  const std::vector<PlanInstruction>& instructions = impl_->plan->impl().instructions;
  for (size_t s = 0; s < instructions.size(); ++s)
    times.push_back({instructions[s].op, instructions[s].kernel.implementation, instructions[s].name,
                     instructions[s].is_conversion, impl_->seconds[s] / runs,
                     instructions[s].kernel.floating_point_operations});
  return times;
}

std::string PlanInstance::describe_profile() const {
  const std::vector<KernelTime> times = profile();
  double total = 0;
  for (const KernelTime& time : times) total += time.seconds;
  std::string text = fmt::format("{:>4} {:>10} {:>6} {:>9}  {:<24} {:<34} {}\n", "#", "µs", "%", "GFLOP/s",
                                 "op", "implementation", "name");
  for (size_t s = 0; s < times.size(); ++s) {
    const KernelTime& time = times[s];
    text += fmt::format("{:>4} {:>10.1f} {:>6.1f} {:>9.1f}  {:<24} {:<34} {}\n", s, time.seconds * 1e6,
                        total > 0 ? 100 * time.seconds / total : 0.0,
                        time.seconds > 0 ? time.floating_point_operations / time.seconds / 1e9 : 0.0, time.op,
                        time.implementation, time.name);
  }
  text += fmt::format("total {:.1f} µs a run, {} runs\n", total * 1e6, impl_->profiled_runs);
  return text;
}

}  // namespace mox
