#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/seconds.h"
#include "runtime/exec/internal/plan_impl.h"
#include "runtime/exec/internal/simplify.h"
#include "runtime/exec/internal/value_memory.h"
#include "runtime/interruption/interruption.h"

namespace mox {
namespace {

constexpr int kAfterTheRun = 1 << 30;  // the last_instruction of values that are read after the run

Kernel copy_kernel(const TensorType& type) {
  Kernel kernel;
  kernel.input_layouts = kernel.output_layouts = {Layout::plain(type)};
  kernel.implementation = "copy";
  kernel.instantiate = [bytes = type.bytes()]() -> KernelFunction {
    return [bytes](const KernelArguments& args) {
      args.team.parallel_for(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
        std::memcpy(args.outputs[0] + begin, args.inputs[0] + begin, end - begin);
      });
    };
  };
  return kernel;
}

// Turns the rewritten graph into instructions over values: chooses kernels and inserts conversions.
class StepBuilder {
 public:
  StepBuilder(Plan::Impl& plan, const CompileOptions& options, const Team& team)
      : plan_(plan), options_(options), team_(team) {}

  // The outputs that must exist in plain layout after the run, so that their conversion
  // follows their producer.
  void require_plain(const Tensor& tensor) { wanted_plain_.insert(key(tensor)); }

  void build(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      internal::throw_if_interrupted();
      add_node(*node);
    }
  }

  // Puts the copies that `keep` has made behind what they copy; instructions count anew from here on.
  void place_copies() {
    if (copies_.empty()) return;
    // Of those behind one instruction the one that was made last comes first.
    std::ranges::reverse(copies_);
    std::ranges::stable_sort(copies_, {}, &Copy::position);
    std::vector<int> moved;  // where instructions of before are now
    std::vector<PlanInstruction> instructions;
    auto copy = copies_.begin();
    for (size_t i = 0; i <= plan_.instructions.size(); ++i) {
      for (; copy != copies_.end() && copy->position == static_cast<int>(i); ++copy) {
        copy->position = static_cast<int>(instructions.size());
        instructions.push_back(std::move(copy->instruction));
      }
      if (i == plan_.instructions.size()) break;
      moved.push_back(static_cast<int>(instructions.size()));
      instructions.push_back(std::move(plan_.instructions[i]));
    }
    plan_.instructions = std::move(instructions);
    for (PlanValue& value : plan_.values)
      for (int* instruction : {&value.first_instruction, &value.last_instruction})
        if (*instruction >= 0 && *instruction != kAfterTheRun) *instruction = moved[*instruction];
    for (const Copy& placed : copies_) {
      const PlanInstruction& instruction = plan_.instructions[placed.position];
      PlanValue& from = at(plan_.root(instruction.inputs[0]));
      from.last_instruction = std::max(from.last_instruction, placed.position);
      at(instruction.outputs[0]).first_instruction = placed.position;
    }
    copies_.clear();
  }

  // The value of `tensor` in plain layout, with memory of its own that survives the run as `storage`.
  int keep(const Tensor& tensor, Storage storage) {
    int version =
        value_in(tensor, Layout::plain(tensor.type()));  // may be another shape of the memory's owner
    int value = plan_.root(version);
    if (at(value).storage != Storage::kArena) {
      if (storage == Storage::kResult && at(value).storage == Storage::kResult &&
          at(plan_.results[at(value).index]).type == tensor.type())
        return value;
      const int copy = new_value(tensor.name() + "/copy", tensor.type(), Layout::plain(tensor.type()));
      // Right behind the instruction that computes the value: what waits for the copy need not wait for the
      // plan's end.
      const int written = at(value).first_instruction;
      if (written >= 0)
        copies_.push_back({written + 1, copy_of(tensor, value, copy)});
      else
        append(copy_of(tensor, value, copy));
      version = value = copy;
    }
    at(value).storage = storage;
    at(value).last_instruction = kAfterTheRun;
    auto& list = storage == Storage::kGradient ? plan_.gradients : plan_.results;
    at(value).index = static_cast<int>(list.size());
    list.push_back(version);
    return value;
  }

 private:
  using Key = std::pair<int, int>;
  static Key key(const Tensor& tensor) { return {tensor.node()->id, tensor.index()}; }
  PlanValue& at(int value) { return plan_.values[value]; }

  int new_value(std::string name, TensorType type, Layout layout) {
    PlanValue value;
    value.name = std::move(name);
    value.type = std::move(type);
    value.layout = std::move(layout);
    plan_.values.push_back(std::move(value));
    return static_cast<int>(plan_.values.size()) - 1;
  }

  static PlanInstruction copy_of(const Tensor& tensor, int from, int to) {
    PlanInstruction result;
    result.op = "copy";
    result.name = tensor.name();
    result.kernel = copy_kernel(tensor.type());
    result.inputs = {from};
    result.outputs = {to};
    return result;
  }

  void add_instruction(std::string op, std::string name, std::string attributes, Kernel kernel,
                       std::vector<int> inputs, std::vector<int> outputs) {
    PlanInstruction result;
    if (kernel.scratch_bytes > 0)
      result.scratch =
          new_value(name + "/scratch", {DType::kUInt8, Shape{static_cast<int64_t>(kernel.scratch_bytes)}},
                    Layout::opaque(kernel.scratch_bytes, "scratch", nullptr));
    result.op = std::move(op);
    result.name = std::move(name);
    result.attributes = std::move(attributes);
    result.kernel = std::move(kernel);
    result.inputs = std::move(inputs);
    result.outputs = std::move(outputs);
    append(std::move(result));
  }

  // At the end of the plan.
  void append(PlanInstruction added) {
    const int instruction = plan_.instructions.size();
    for (const int input : added.inputs) {
      PlanValue& value = at(plan_.root(input));
      value.last_instruction = std::max(value.last_instruction, instruction);
    }
    if (added.scratch >= 0)
      at(added.scratch).first_instruction = at(added.scratch).last_instruction = instruction;
    for (const int output : added.outputs) {
      at(output).first_instruction = instruction;
      at(output).last_instruction = std::max(at(output).last_instruction, instruction);
    }
    plan_.instructions.push_back(std::move(added));
  }

  // The value of `tensor` in `layout`, converted if it does not exist in it yet.
  int value_in(const Tensor& tensor, const Layout& layout) {
    auto& versions = versions_[key(tensor)];
    MOX_ASSERT(!versions.empty(), fmt::format("'{}' is computed before it is used", tensor.name()));
    for (int version : versions)
      if (at(version).layout == layout) return version;
    const int from = versions.front();
    Kernel kernel = options_.convert(tensor.type(), at(from).layout, layout, team_);
    const int converted = new_value(tensor.name(), tensor.type(), layout);
    if (at(plan_.root(from)).storage == Storage::kConstant) {
      convert_constant(kernel, from, converted);
    } else {
      const std::string what = fmt::format("{} -> {}", at(from).layout.to_string(), layout.to_string());
      add_instruction("convert", tensor.name(), what, std::move(kernel), {from}, {converted});
      plan_.instructions.back().is_conversion = true;
    }
    versions_[key(tensor)].push_back(converted);
    return converted;
  }

  void convert_constant(const Kernel& kernel, int from, int to) {
    const Array& source = plan_.constants[at(plan_.root(from)).index];
    auto memory = allocate_aligned(at(to).layout.bytes(),
                                   fmt::format("the constant '{}' in another layout", at(from).name));
    const auto scratch = allocate_aligned(kernel.scratch_bytes);
    const std::byte* input = source.data();
    std::byte* output = memory.get();
    kernel.instantiate()({std::span(&input, 1), std::span(&output, 1), scratch.get(), team_, 0, 0});
    at(to).storage = Storage::kConstant;
    at(to).index = static_cast<int>(plan_.constants.size());
    plan_.constants.push_back(
        Array({DType::kUInt8, Shape{static_cast<int64_t>(at(to).layout.bytes())}}, std::move(memory)));
  }

  void add_stored(const Node& node) {
    const TensorType& type = node.outputs[0];
    const int value = new_value(node.name, type, Layout::plain(type));
    switch (node.op->kind) {
      case Op::Kind::kInput: {
        const int component = static_cast<int>(node.attributes.get<int64_t>("component"));
        const auto count = std::max(plan_.components.size(), static_cast<size_t>(component) + 1);
        plan_.components.resize(count);
        plan_.component_is_used.resize(count, false);
        plan_.components[component] = type;
        plan_.component_is_used[component] = true;
        at(value).storage = Storage::kInput;
        at(value).index = component;
        break;
      }
      case Op::Kind::kVariable:
        at(value).storage = Storage::kVariable;
        at(value).index = static_cast<int>(plan_.variables.size());
        plan_.variables.push_back(node.attributes.get<std::string>("variable"));
        plan_.statistics.variable_bytes += type.bytes();
        break;
      default:
        at(value).storage = Storage::kConstant;
        at(value).index = static_cast<int>(plan_.constants.size());
        plan_.constants.push_back(node.attributes.get<Array>("value"));
    }
    versions_[{node.id, 0}] = {value};
  }

  void add_node(const Node& node) {
    if (node.op->kind != Op::Kind::kCompute && node.op->kind != Op::Kind::kRandom) return add_stored(node);
    if (!node.op->compile)
      throw InvalidArgument(fmt::format("the op '{}' of '{}' made at {} has no kernel: set Op::compile",
                                        node.op->name, node.name, to_string(node.where)));
    KernelRequest request{node, {}, {}, team_, options_.hints};
    for (const Tensor& input : node.inputs) {
      const PlanValue& value = at(versions_.at(key(input)).front());
      request.input_layouts.push_back(value.layout);
      const Storage storage = at(plan_.root(versions_.at(key(input)).front())).storage;
      request.input_is_stored.push_back(storage == Storage::kVariable || storage == Storage::kConstant);
    }
    Kernel kernel = node.op->compile(request);
    if (kernel.input_layouts.size() != node.inputs.size() ||
        kernel.output_layouts.size() != node.outputs.size())
      throw InvalidArgument(
          fmt::format("the kernel of the op '{}' states {} input and {} output layouts, but '{}' made at {} "
                      "has {} inputs and {} outputs; it needs one each (plain_kernel fills them in)",
                      node.op->name, kernel.input_layouts.size(), kernel.output_layouts.size(), node.name,
                      to_string(node.where), node.inputs.size(), node.outputs.size()));
    plan_.statistics.floating_point_operations += kernel.floating_point_operations;
    std::vector<int> inputs, outputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(value_in(node.inputs[i], kernel.input_layouts[i]));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Tensor output(const_cast<Node*>(&node), i);
      outputs.push_back(new_value(output.name(), node.outputs[i], kernel.output_layouts[i]));
      versions_[key(output)] = {outputs.back()};
    }
    if (kernel.alias >= 0) {
      at(outputs[0]).alias_of = plan_.root(inputs[kernel.alias]);
    } else {
      add_instruction(std::string(node.op->name), node.name, to_string(node.attributes), std::move(kernel),
                      std::move(inputs), outputs);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Tensor output(const_cast<Node*>(&node), i);
      if (wanted_plain_.contains(key(output))) value_in(output, Layout::plain(output.type()));
    }
  }

  Plan::Impl& plan_;
  const CompileOptions& options_;
  const Team& team_;
  std::map<Key, std::vector<int>> versions_;  // the first is the one the producer made
  std::set<Key> wanted_plain_;
  struct Copy {
    int position;  // in front of this instruction
    PlanInstruction instruction;
  };
  std::vector<Copy> copies_;
};

}  // namespace

std::shared_ptr<const Plan> Plan::compile(const Graph& graph, const PlanRequest& request,
                                          const CompileOptions& options, const Team& team) {
  const auto start = std::chrono::steady_clock::now();
  auto impl = std::make_unique<Impl>();
  std::vector<Tensor> outputs = request.fetches;
  std::vector<std::string> gradient_variables;
  for (const GradientOutput& gradient : request.gradients) {
    outputs.push_back(gradient.gradient);
    gradient_variables.push_back(graph.spec(gradient.variable).name);
  }
  for (const AfterStepValue& after : request.after_step_values) outputs.push_back(after.value);

  GraphRewriter rewriter(graph, std::move(outputs));
  rewriter.apply(fold_constants(options), is_of_constants);
  rewriter.apply(share_equal_nodes());
  for (const NamedRule& rule : options.rules)
    if (const int fired = rewriter.apply(rule.rule, rule.needs))
      impl->fired_rules.push_back(fmt::format("{}: {}", rule.name, fired));
  outputs = rewriter.outputs();
  impl->graph = rewriter.release();

  StepBuilder builder(*impl, options, team);
  for (const Tensor& output : outputs) builder.require_plain(output);
  builder.build(*impl->graph);
  size_t next = 0;
  for (size_t i = 0; i < request.fetches.size(); ++i)
    impl->fetches.push_back(impl->values[builder.keep(outputs[next++], Storage::kResult)].index);
  for (size_t i = 0; i < request.gradients.size(); ++i) builder.keep(outputs[next++], Storage::kGradient);
  for (const AfterStepValue& after : request.after_step_values) {
    const int value = builder.keep(outputs[next++], Storage::kResult);
    impl->after_step_values.push_back({graph.spec(after.variable).name, impl->values[value].index});
  }
  builder.place_copies();
  schedule_gradient_events(*impl, gradient_variables);
  impl->gradients_in_parts = options.gradients_in_parts;
  if (options.gradients_in_parts) {
    hand_over_in_parts(*impl, gradient_variables);
    let_gradients_share_memory(*impl);
  }
  share_in_place(*impl);
  place_in_arena(*impl);

  PlanStatistics& statistics = impl->statistics;
  statistics.nodes = impl->graph->nodes().size();
  statistics.instructions = impl->instructions.size();
  statistics.conversions =
      std::count_if(impl->instructions.begin(), impl->instructions.end(),
                    [](const PlanInstruction& instruction) { return instruction.is_conversion; });
  for (int gradient : impl->gradients)
    if (!options.gradients_in_parts) statistics.gradient_bytes += impl->values[gradient].type.bytes();
  for (const Array& constant : impl->constants) statistics.constant_bytes += constant.bytes();
  for (int result : impl->results) statistics.result_bytes += impl->values[result].type.bytes();
  statistics.compile_seconds = seconds_since(start);
  return std::shared_ptr<const Plan>(new Plan(std::move(impl)));
}

Plan::Plan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Plan::~Plan() = default;
const PlanStatistics& Plan::statistics() const { return impl_->statistics; }

}  // namespace mox
