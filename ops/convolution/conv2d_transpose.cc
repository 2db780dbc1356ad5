#include <fmt/format.h>

#include <algorithm>

#include "ops/convolution/conv2d.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/convolution_inputs.h"

namespace mox {
namespace {

using List = std::vector<int64_t>;

// The largest extent that the rule may give: far beyond any image, and small enough not to overflow.
constexpr int64_t kLargest = int64_t{1} << 30;

int64_t output_extent(const Attributes& attributes, int64_t n, int64_t window, int axis) {
  const int64_t stride = attributes.get<List>("strides")[axis],
                more = attributes.get<List>("output_padding")[axis];
  if (attributes.get<std::string>("padding") == Padding::kSame.name()) return n * stride + more;
  const List& sizes = attributes.get<List>("padding_sizes");
  const int64_t extent = (window - 1) * attributes.get<List>("dilations")[axis] + 1;
  return (n - 1) * stride + extent - sizes[2 * axis] - sizes[2 * axis + 1] + more;
}

TensorType output_type(const Attributes& attributes, const TensorType& x, const TensorType& w) {
  return {x.dtype,
          {x.shape[0], w.shape[1] * attributes.get<int64_t>("groups"),
           output_extent(attributes, x.shape[2], w.shape[2], 0),
           output_extent(attributes, x.shape[3], w.shape[3], 1)}};
}

void check_ranges(const OpCall& call, const TensorType& x, const TensorType& w) {
  auto in_range = [](int64_t value, int64_t least) { return value >= least && value <= kLargest; };
  for (int axis = 0; axis < 2; ++axis) {
    const int i = axis + 2;
    call.require(in_range(call.attributes.get<List>("strides")[axis], 1),
                 "strides of at least 1 and at most 2^30");
    call.require(in_range(call.attributes.get<List>("dilations")[axis], 1),
                 "dilations of at least 1 and at most 2^30");
    call.require(in_range(call.attributes.get<List>("output_padding")[axis], 0),
                 "an output padding of at least 0 and at most 2^30");
    call.require(in_range(w.shape[i], 1), "a window of at least 1 x 1 and at most 2^30 a side");
    call.require(x.shape[i] <= kLargest, "an image of at most 2^30 pixels a side");
  }
  for (const int64_t size : call.attributes.get<List>("padding_sizes"))
    call.require(in_range(size, 0), "padding sizes of at least 0");
  call.require(in_range(call.attributes.get<int64_t>("groups"), 1), "at least one group");
}

std::vector<TensorType> infer_conv2d_transpose(const OpCall& call) {
  const TensorType &x = call.type(0), &w = call.type(1);
  call.require(x.dtype == DType::kFloat32 && w.dtype == DType::kFloat32, "float32 images and filters");
  call.require(x.shape.rank() == 4, "images [batch, channels, height, width]");
  call.require(w.shape.rank() == 4, "filters [channels, out_channels / groups, height, width]");
  if (w.shape[0] != x.shape[1])
    call.fail(fmt::format("filters {} with as many input channels (their first axis) as the image {} has",
                          to_string(w.shape), to_string(x.shape)));
  check_ranges(call, x, w);
  for (int axis = 0; axis < 2; ++axis) {
    const int i = axis + 2;
    const int64_t extent = output_extent(call.attributes, x.shape[i], w.shape[i], axis);
    call.require(extent >= 0 && extent <= kLargest,
                 "padding that leaves an image of at most 2^30 pixels a side");
  }
  const TensorType y = output_type(call.attributes, x, w);
  const ConvolutionGeometry geometry = check_convolution(call, y, w);
  if (geometry.y != x)
    call.fail(fmt::format(
        "an output padding smaller than the stride (0 for \"same\" padding): the convolution of the "
        "result {} would give {}",
        to_string(y.shape), to_string(geometry.y.shape)));
  return {y};
}

std::vector<Tensor> gradient_of_conv2d_transpose(const GradientCall& call) {
  const Tensor &x = call.input(0), &w = call.input(1), &dy = call.gradient();
  const ConvolutionOptions options = convolution_options(call.node.attributes);
  return {conv2d(dy, w, options), conv2d_filter_gradient(dy, w.shape(), x, options)};
}

Kernel compile_conv2d_transpose(const KernelRequest& request) {
  const Node& node = request.node;
  const ConvolutionGeometry geometry =
      resolve_convolution(node.attributes, node.outputs[0], unpack<ConvolutionInputs>(node).filter.type());
  const auto inputs = positions<ConvolutionInputs>(node);
  return onednn::input_gradient_kernel(request, geometry, inputs.filter.index, inputs.image.index);
}

}  // namespace

const Op& conv2d_transpose_op() {
  static const Op op{.name = "conv2d_transpose",
                     .infer = infer_conv2d_transpose,
                     .gradient = gradient_of_conv2d_transpose,
                     .compile = compile_conv2d_transpose};
  return op;
}

Tensor conv2d_transpose(const Tensor& x, const Tensor& w, const TransposedConvolutionOptions& options,
                        SourceLocation where) {
  Attributes attributes = convolution_attributes({.strides = options.strides,
                                                  .dilations = options.dilations,
                                                  .groups = options.groups,
                                                  .padding = options.padding});
  attributes.set("output_padding", List(options.output_padding.begin(), options.output_padding.end()));
  return make_tensor(conv2d_transpose_op(), {x, w}, std::move(attributes), where);
}

}  // namespace mox
