#include "ops/shape/internal/fill_value.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_fill(const OpCall& call) {
  const DType dtype = call.attributes.get<DType>("dtype");
  internal::require_representable(call, dtype, call.attributes.get<double>("value"));
  return {{dtype, Shape(call.attributes.get<std::vector<int64_t>>("shape"))}};
}

Kernel compile_fill(const KernelRequest& request) {
  const internal::FillValue fill(request.node.outputs[0], request.node.attributes.get<double>("value"));
  return plain_kernel(request.node,
                      [fill](const KernelArguments& args) { fill.run(args.outputs[0], args.team); });
}

const Op kFill{.name = "fill", .infer = infer_fill, .compile = compile_fill};

Attributes fill_attributes(std::vector<int64_t> shape, double value, DType dtype) {
  return {{"shape", std::move(shape)}, {"dtype", dtype}, {"value", value}};
}

Tensor fill_like(const Tensor& x, double value, std::string_view op, SourceLocation where) {
  internal::require_defined(x, op, where);
  return x.node()
      ->graph->add_node(kFill, {}, fill_attributes(internal::dims_of(x.shape()), value, x.dtype()), where)
      .output();
}

}  // namespace

Tensor fill(std::vector<int64_t> shape, double value, DType dtype, SourceLocation where) {
  return make_tensor(kFill, {}, fill_attributes(std::move(shape), value, dtype), where);
}

Tensor zeros_like(const Tensor& x, SourceLocation where) { return fill_like(x, 0, "zeros_like", where); }
Tensor ones_like(const Tensor& x, SourceLocation where) { return fill_like(x, 1, "ones_like", where); }

}  // namespace mox
