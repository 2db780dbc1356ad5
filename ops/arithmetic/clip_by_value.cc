#include <limits>

#include "ops/arithmetic/arithmetic.h"
#include "ops/comparison/comparison.h"
#include "ops/elementwise/op.h"
#include "ops/support/fusable_ops.h"

namespace mox {
namespace {

using elementwise::Opcode;

}  // namespace

const Op& clip_by_value_op() {
  static const Op op{
      .name = "clip_by_value",
      .infer = [](const OpCall& call) -> std::vector<TensorType> {
        call.require(call.attributes.get<double>("low") <= call.attributes.get<double>("high"),
                     "low <= high");
        return elementwise::infer_floating_unary(call);
      },
      .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
        const Tensor inside =
            logical_and(greater_equal(call.input(0), call.node.attributes.get<double>("low")),
                        less_equal(call.input(0), call.node.attributes.get<double>("high")));
        return {select(inside, call.gradient(), 0)};
      },
      .compile = elementwise::ElementwiseCompile{[](const Node& node) {
        return elementwise::Program{
            .inputs = 1,
            .instructions = {{.opcode = Opcode::kConstant, .constant = node.attributes.get<double>("low")},
                             {.opcode = Opcode::kConstant, .constant = node.attributes.get<double>("high")},
                             {.opcode = Opcode::kMaximum, .operands = {0, 1, -1}},
                             {.opcode = Opcode::kMinimum, .operands = {3, 2, -1}}}};
      }},
  };
  return op;
}

Tensor clip_by_value(const Tensor& x, double low, double high, SourceLocation where) {
  // A bound that float32 does not hold bounds nothing, as the largest double, which means that.
  const auto as_float32 = [](double bound) {
    constexpr double kLargest = std::numeric_limits<float>::max(),
                     kNone = std::numeric_limits<double>::infinity();
    return bound > kLargest ? kNone : bound < -kLargest ? -kNone : bound;
  };
  return make_tensor(clip_by_value_op(), {x}, {{"low", as_float32(low)}, {"high", as_float32(high)}}, where);
}

}  // namespace mox
