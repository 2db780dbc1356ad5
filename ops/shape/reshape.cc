#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

std::vector<TensorType> infer_reshape(const OpCall& call) {
  std::vector<int64_t> dims = call.attributes.get<std::vector<int64_t>>("shape");
  const int64_t elements = call.shape(0).elements();
  int64_t* unknown = nullptr;
  __int128 known = 1;  // product of the given extents, cut off where it is certainly too large
  bool has_zero = false;
  for (int64_t& dim : dims) {
    call.require(dim >= -1, "extents >= 0, or -1 for the one to be computed");
    call.require(dim >= 0 || !unknown, "at most one extent of -1");
    if (dim == -1) unknown = &dim;
    has_zero |= dim == 0;
    if (dim > 0) known = std::min<__int128>(known * dim, __int128{1} << 62);
  }
  const std::string expected = fmt::format("a shape of {} elements", elements);
  if (unknown) {
    call.require(!has_zero, "no extent of 0 beside -1, which could then be anything");
    call.require(elements % known == 0, fmt::format("extents whose product divides {} elements", elements));
    *unknown = elements / known;
  } else {
    call.require((has_zero ? 0 : known) == elements, expected);
  }
  const Shape shape(std::move(dims));
  call.require(shape.elements() == elements, expected);
  return {{call.dtype(0), shape}};
}

const Op kReshape{
    .name = "reshape",
    .infer = infer_reshape,
    .gradient = [](const GradientCall& call) -> std::vector<Tensor> {
      return {reshape(call.gradient(), internal::dims_of(call.input(0).shape()))};
    },
    .compile = [](const KernelRequest& request) { return alias_kernel(request.node); },
};

}  // namespace

Tensor reshape(const Tensor& x, std::vector<int64_t> shape, SourceLocation where) {
  return make_tensor(kReshape, {x}, {{"shape", std::move(shape)}}, where);
}

}  // namespace mox
