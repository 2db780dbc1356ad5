#include "ops/apply_dropout_mask.h"

#include <fmt/format.h>

#include "ops/internal/dropout_mask.h"
#include "ops/internal/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

double rate_of(const Node& node) { return node.attributes.get<double>("rate"); }

std::vector<TensorType> infer(const OpCall& call) {
  internal::require_float32(call, 0, "an input");
  const double rate = call.attributes.get<double>("rate");
  call.require(rate >= 0 && rate < 1, "a rate in [0, 1)");
  const TensorType mask{DType::kUInt8, Shape{internal::dropout_mask_bytes(call.shape(0).elements())}};
  if (call.type(1) != mask) call.fail(fmt::format("a mask of type {}", to_string(mask)));
  return same_as_input(call);
}

std::vector<Tensor> gradient(const GradientCall& call) {
  return {apply_dropout_mask(call.gradient(), call.input(1), rate_of(call.node)), Tensor()};
}

Kernel compile(const KernelRequest& request) {
  const int64_t elements = request.node.outputs[0].shape.elements();
  const float scale = internal::dropout_scale(rate_of(request.node));
  Kernel kernel = plain_kernel(request.node, [elements, scale](const KernelArguments& args) {
    internal::apply_dropout(args.input<float>(0), args.input<uint8_t>(1), args.output<float>(0), elements,
                            scale, args.team);
  });
  kernel.in_place = {{0, 0}};
  return kernel;
}

const Op kApplyDropoutMask{
    .name = "apply_dropout_mask", .infer = infer, .gradient = gradient, .compile = compile};

}  // namespace

Tensor apply_dropout_mask(const Tensor& x, const Tensor& mask, double rate, SourceLocation where) {
  return make_tensor(kApplyDropoutMask, {x, mask}, {{"rate", rate}}, where);
}

}  // namespace mox
