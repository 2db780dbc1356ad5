#include "ops/elementwise/kernel.h"

#include <algorithm>

#include "ops/elementwise/internal/access.h"
#include "ops/elementwise/internal/executable.h"
#include "ops/elementwise/op.h"
#include "runtime/base/error.h"
#include "runtime/graph/op.h"

namespace mox::elementwise {
namespace {

// Only full-shape operands share the output's layout.
bool is_full_shape(const Node& node, size_t input) {
  return node.inputs[input].shape() == node.outputs[0].shape && node.outputs[0].shape.elements() != 1;
}

// What is known of each input where a padded layout has its padding: full-shape operands are zero there.
std::vector<std::optional<float>> known_in_padding(const Node& node) {
  std::vector<std::optional<float>> known;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Node& producer = *node.inputs[i].node();
    if (is_full_shape(node, i)) {
      known.push_back(0.0f);
    } else if (producer.op->kind == Op::Kind::kConstant && node.inputs[i].shape().elements() == 1) {
      known.push_back(static_cast<float>(producer.attributes.get<Array>("value").item()));
    } else {
      known.push_back(std::nullopt);
    }
  }
  return known;
}

// Whether values of that dtype can be converted between layouts: a kernel must not make what nobody can read.
bool can_be_blocked(DType dtype) { return dtype != DType::kInt64; }

// Whether a kernel that knows nothing of channels and rows may run over the elements of `layout` as they lie.
bool may_run_in(const Layout& layout, const Node& node, const Program& program) {
  if (layout.is_opaque()) return false;
  if (!layout.is_padded()) return true;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!is_full_shape(node, i) && node.inputs[i].shape().elements() != 1) return false;
  return register_type(node) == DType::kFloat32 && constant_result(program, known_in_padding(node)) == 0.0f;
}

// The layout in which the output is made: that of an operand that is blocked already, rather of one that is
// computed than of a stored one, which would have to be converted every step if another operand decided.
Layout choose_layout(const KernelRequest& request, const Program& program) {
  const Node& node = request.node;
  bool can_block = can_be_blocked(node.outputs[0].dtype);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    can_block &= !is_full_shape(node, i) || can_be_blocked(node.inputs[i].dtype());
  if (!can_block) return Layout::plain(node.outputs[0]);
  for (const bool stored : {false, true}) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Layout& layout = request.input_layouts[i];
      if (request.input_is_stored[i] != stored || !is_full_shape(node, i) || layout.is_plain()) continue;
      if (may_run_in(layout, node, program)) return with_dtype(layout, node.outputs[0]);
    }
  }
  return Layout::plain(node.outputs[0]);
}

}  // namespace

DType register_type(const Node& node) {
  // Of a fused node all parts compute in float32, and the casts from and to others are within.
  if (node.op == &fused_op()) return DType::kFloat32;
  std::vector<DType> dtypes = {node.outputs[0].dtype};
  for (const Tensor& input : node.inputs) dtypes.push_back(input.dtype());
  auto any = [&](auto... wanted) {
    return std::any_of(dtypes.begin(), dtypes.end(), [&](DType dtype) { return ((dtype == wanted) || ...); });
  };
  if (any(DType::kFloat32, DType::kBFloat16)) return DType::kFloat32;
  if (any(DType::kInt64)) return DType::kInt64;
  return any(DType::kInt32, DType::kUInt8) ? DType::kInt32 : DType::kFloat32;
}

Kernel ElementwiseCompile::operator()(const KernelRequest& request) const {
  const Node& node = request.node;
  const TensorType& output = node.outputs[0];
  auto executable = std::make_shared<Executable>();
  executable->program = program(node);
  MOX_ASSERT(executable->program.inputs == static_cast<int>(node.inputs.size()),
             "a program takes the node's inputs");

  const Layout layout = choose_layout(request, executable->program);
  Kernel kernel;
  kernel.output_layouts = {layout};
  executable->register_dtype = register_type(node);
  executable->output_dtype = output.dtype;
  executable->elements = layout.bytes() / size_of(output.dtype);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorType& type = node.inputs[i].type();
    const bool direct = is_full_shape(node, i);
    kernel.input_layouts.push_back(direct ? with_dtype(layout, type) : Layout::plain(type));
    executable->accesses.push_back(direct ? Access::direct()
                                          : Access::broadcast(type.shape, output.shape, layout));
    executable->input_dtypes.push_back(type.dtype);
    // Without instructions nothing lies between what is read in place and the output but the conversion,
    // which is made on the way to another place.
    const bool only_converts = executable->program.instructions.empty() && type.dtype != output.dtype;
    if (direct && !only_converts && size_of(type.dtype) == size_of(output.dtype))
      kernel.in_place.emplace_back(0, static_cast<int>(i));
  }
  prepare(executable.get(), request.team);
  kernel.scratch_bytes = executable->scratch_bytes();
  kernel.implementation = layout.is_plain() ? "loop" : "loop:" + layout.to_string();
  for (const Instruction& instruction : executable->program.instructions)
    if (instruction.opcode != Opcode::kConstant) kernel.floating_point_operations += executable->elements;
  kernel.instantiate = [executable] { return make_kernel_function(executable); };
  return kernel;
}

ElementwiseCompile compile_instruction(Opcode opcode) {
  return {[opcode](const Node&) { return single_instruction(opcode); }};
}

ElementwiseCompile compile_copy() {
  return {[](const Node&) { return Program{.inputs = 1, .instructions = {}}; }};
}

std::optional<Program> program_of(const Node& node) {
  const auto* compile = node.op->compile.target<ElementwiseCompile>();
  if (!compile) return std::nullopt;
  return compile->program(node);
}

}  // namespace mox::elementwise
