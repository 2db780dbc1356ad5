#include <fmt/format.h>

#include "ops/random/internal/dropout_mask.h"
#include "ops/random/random.h"
#include "ops/support/shape_rules.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_dropout(const OpCall& call) {
  internal::require_float32(call, 0, "an input");
  const double rate = call.attributes.get<double>("rate");
  call.require(rate >= 0 && rate < 1, "a rate in [0, 1)");
  return {call.type(0), {DType::kUInt8, Shape{internal::dropout_mask_bytes(call.shape(0).elements())}}};
}

std::vector<Tensor> gradient_of_dropout(const GradientCall& call) {
  return {apply_dropout_mask(call.gradient(), call.output(1), call.node.attributes.get<double>("rate"))};
}

Kernel compile_dropout(const KernelRequest& request) {
  const Node& node = request.node;
  const int64_t elements = node.outputs[0].shape.elements();
  const double rate = node.attributes.get<double>("rate");
  const uint64_t node_key = stable_hash(node.name);
  Kernel kernel = plain_kernel(
      node,
      [elements, rate, node_key](const KernelArguments& args) {
        internal::draw_dropout(args.input<float>(0), args.output<float>(0), args.output<uint8_t>(1), elements,
                               rate, args.seed, mix_hash(node_key, args.step), args.team);
      },
      "philox");
  kernel.in_place = {{0, 0}};
  return kernel;
}

const Op kDropout{.name = "dropout",
                  .kind = Op::Kind::kRandom,
                  .infer = infer_dropout,
                  .gradient = gradient_of_dropout,
                  .compile = compile_dropout};

}  // namespace

Tensor dropout(const Tensor& x, double rate, bool training, SourceLocation where) {
  internal::require_defined(x, "dropout", where);
  // A rate that is wrong is refused in every mode, not only when training starts.
  const bool acts = !(rate == 0) && (training || !(rate > 0 && rate < 1));
  return acts ? make_tensor(kDropout, {x}, {{"rate", rate}}, where) : x;
}

}  // namespace mox
