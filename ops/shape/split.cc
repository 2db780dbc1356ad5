#include <fmt/format.h>

#include "ops/shape/internal/box_copy.h"
#include "ops/shape/shape.h"
#include "ops/support/shape_rules.h"
#include "runtime/graph/op.h"

namespace mox {
namespace {

using Sizes = std::vector<int64_t>;

std::vector<TensorType> infer_pieces(const OpCall& call, int axis, const Sizes& sizes) {
  std::vector<TensorType> pieces;
  Sizes dims = internal::dims_of(call.shape(0));
  for (int64_t size : sizes) {
    dims[axis] = size;
    pieces.push_back({call.dtype(0), Shape(dims)});
  }
  return pieces;
}

std::vector<TensorType> infer_split(const OpCall& call) {
  const int axis = internal::checked_axis(call, call.attributes.get<int64_t>("axis"), call.shape(0).rank());
  const int64_t extent = call.shape(0)[axis];
  if (call.attributes.has("parts")) {
    const int64_t parts = call.attributes.get<int64_t>("parts");
    // More parts than elements is allowed only for an empty axis; the limit keeps a wrong number
    // from filling memory.
    call.require(parts >= 1 && parts <= 65536, "a number of parts in [1, 65536]");
    if (extent % parts != 0) call.fail(fmt::format("a number of parts that divides the extent {}", extent));
    return infer_pieces(call, axis, Sizes(parts, extent / parts));
  }
  const auto& sizes = call.attributes.get<Sizes>("sizes");
  call.require(!sizes.empty(), "at least one size");
  int64_t rest = extent;
  for (int64_t size : sizes) {
    call.require(size >= 0 && size <= rest, fmt::format("sizes >= 0 whose sum is the extent {}", extent));
    rest -= size;
  }
  call.require(rest == 0, fmt::format("sizes whose sum is the extent {}", extent));
  return infer_pieces(call, axis, sizes);
}

std::vector<Tensor> split_gradient(const GradientCall& call) {
  std::vector<Tensor> pieces(call.output_gradients.begin(), call.output_gradients.end());
  for (size_t i = 0; i < pieces.size(); ++i)
    if (!pieces[i].defined()) pieces[i] = zeros_like(call.output(i));
  return {concat(std::move(pieces), call.node.attributes.get<int64_t>("axis"))};
}

Kernel compile_split(const KernelRequest& request) {
  const Node& node = request.node;
  const TensorType& whole = node.inputs[0].type();
  const int axis = whole.shape.normalized_axis(node.attributes.get<int64_t>("axis"));
  std::vector<internal::BoxCopy> copies;
  const Sizes origin(whole.shape.rank(), 0);
  Sizes at = origin;
  for (const TensorType& piece : node.outputs) {
    copies.emplace_back(internal::dims_of(piece.shape), whole.shape, at, piece.shape, origin,
                        size_of(whole.dtype));
    at[axis] += piece.shape[axis];
  }
  return plain_kernel(
      node,
      [copies = std::move(copies)](const KernelArguments& args) {
        for (size_t i = 0; i < copies.size(); ++i) copies[i].run(args.inputs[0], args.outputs[i], args.team);
      },
      "copy");
}

const Op kSplit{.name = "split", .infer = infer_split, .gradient = split_gradient, .compile = compile_split};

std::vector<Tensor> pieces_of(Node& node) {
  std::vector<Tensor> pieces;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) pieces.push_back(node.output(i));
  return pieces;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, int64_t parts, int64_t axis, SourceLocation where) {
  return pieces_of(make_node(kSplit, {x}, {{"parts", parts}, {"axis", axis}}, where));
}

std::vector<Tensor> split_sizes(const Tensor& x, std::vector<int64_t> sizes, int64_t axis,
                                SourceLocation where) {
  return pieces_of(make_node(kSplit, {x}, {{"sizes", std::move(sizes)}, {"axis", axis}}, where));
}

}  // namespace mox
