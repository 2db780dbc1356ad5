#include <fmt/format.h>

#include "ops/random/internal/dropout_mask.h"
#include "ops/random/random.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_apply_dropout_mask(const OpCall& call) {
  internal::require_float32(call, 0, "an input");
  const double rate = call.attributes.get<double>("rate");
  call.require(rate >= 0 && rate < 1, "a rate in [0, 1)");
  const TensorType mask{DType::kUInt8, Shape{internal::dropout_mask_bytes(call.shape(0).elements())}};
  if (call.type(1) != mask) call.fail(fmt::format("a mask of type {}", to_string(mask)));
  return same_as_input(call);
}

std::vector<Tensor> gradient_of_apply_dropout_mask(const GradientCall& call) {
  return {apply_dropout_mask(call.gradient(), call.input(1), call.node.attributes.get<double>("rate")),
          Tensor()};
}

Kernel compile_apply_dropout_mask(const KernelRequest& request) {
  const int64_t elements = request.node.outputs[0].shape.elements();
  const float scale = internal::dropout_scale(request.node.attributes.get<double>("rate"));
  Kernel kernel = plain_kernel(request.node, [elements, scale](const KernelArguments& args) {
    internal::apply_dropout(args.input<float>(0), args.input<uint8_t>(1), args.output<float>(0), elements,
                            scale, args.team);
  });
  kernel.in_place = {{0, 0}};
  return kernel;
}

const Op kApplyDropoutMask{.name = "apply_dropout_mask",
                           .infer = infer_apply_dropout_mask,
                           .gradient = gradient_of_apply_dropout_mask,
                           .compile = compile_apply_dropout_mask};

}  // namespace

Tensor apply_dropout_mask(const Tensor& x, const Tensor& mask, double rate, SourceLocation where) {
  return make_tensor(kApplyDropoutMask, {x, mask}, {{"rate", rate}}, where);
}

}  // namespace mox
