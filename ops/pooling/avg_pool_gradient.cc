#include <fmt/format.h>

#include <string_view>

#include "ops/pooling/internal/pooling.h"
#include "ops/pooling/pooling.h"
#include "ops/processor/processor.h"
#include "ops/support/channel_view.h"
#include "runtime/graph/graph.h"

namespace mox {
namespace {

std::vector<TensorType> infer_avg_pool_gradient(const OpCall& call) {
  const TensorType x = forward_image_type(call.attributes);
  const TensorType y = check_pooling(call, x);
  if (call.type(0) != y) call.fail(fmt::format("dy of the pooling's output type {}", to_string(y)));
  return {x};
}

std::vector<Tensor> gradient_of_avg_pool_gradient(const GradientCall& call) {
  return {avg_pool(call.gradient(), pooling_options(call.node.attributes))};
}

// A gradient of single pixels says nothing about the layout that its image should have. Where all who read
// the image round it to bfloat16, for convolutions, and those compute in tiles, they want channels last; else
// blocks of channels.
bool makes_channels_last(const Node& node) {
  if (!processor().tiles || node.inputs[0].shape()[2] * node.inputs[0].shape()[3] != 1) return false;
  bool is_read = false, is_rounded = true;
  for (const auto& reader : node.graph->nodes())
    for (const Tensor& input : reader->inputs)
      if (input.node() == &node) {
        is_read = true;
        is_rounded &= reader->outputs[0].dtype == DType::kBFloat16;
      }
  return is_read && is_rounded;
}

// One window of the whole image.
bool covers_the_image(const Attributes& attributes, const TensorType& x) {
  for (const WindowAxis& axis : pooling_window(attributes, x))
    if (axis.output != 1 || axis.size != axis.input || axis.before != 0) return false;
  return true;
}

// Each pixel of an image in `layout`, float32, takes its share of the one that the image was averaged to.
Kernel sharing_kernel(const Node& node, const TensorType& x, const Layout& layout, const ChannelView& view) {
  constexpr int64_t kFloatsPerThread = 1 << 14;
  const int64_t grain = 1 + kFloatsPerThread / (view.inner * view.width);
  Kernel kernel = plain_kernel(node, [view, grain](const KernelArguments& arguments) {
    const float pixels = view.inner;
    const float* dy = arguments.input<float>(0);
    float* dx = arguments.output<float>(0);
    arguments.team.parallel_for(view.outer * view.blocks, grain, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        float* to = dx + plane * view.inner * view.width;
        for (int64_t pixel = 0; pixel < view.inner; ++pixel, to += view.width)
          for (int64_t c = 0; c < view.width; ++c) to[c] = dy[plane * view.width + c] / pixels;
      }
    });
  });
  kernel.output_layouts[0] = layout;
  kernel.floating_point_operations = x.shape.elements();
  return kernel;
}

// The image takes the layout of dy. oneDNN wants the forward description for that, which has the layout of x.
Kernel compile_avg_pool_gradient(const KernelRequest& request) {
  const Node& node = request.node;
  if (onednn::has_empty_value(node)) return onednn::zero_kernel(node);
  const TensorType x = forward_image_type(node.attributes);
  const TensorType& y = node.inputs[0].type();
  const Layout dy_layout = request.input_layouts[0].is_opaque() ? Layout::plain(y) : request.input_layouts[0];
  const dnnl::algorithm algorithm = onednn::average_algorithm(node.attributes);
  const dnnl::memory::desc x_descriptor = makes_channels_last(node)
                                              ? onednn::channels_last_descriptor(x)
                                              : onednn::image_descriptor_like(x, y, dy_layout);
  const auto forward = onednn::describe_pooling(node.attributes, x, y, x_descriptor, algorithm,
                                                dnnl::prop_kind::forward_training);
  const auto description = onednn::describe_pooling_gradient(node.attributes, x, forward, algorithm);
  // It has no kernel of its own but its reference for blocks of 8 channels.
  if (x.dtype == DType::kFloat32 && std::string_view(description.impl_info_str()).starts_with("ref") &&
      covers_the_image(node.attributes, x)) {
    const Layout layout = onednn::layout_of(x, description.diff_src_desc());
    const auto view = channel_view(x, layout);
    if (view && view->padded_channels() == x.shape[1]) return sharing_kernel(node, x, layout, *view);
  }
  return onednn::primitive_kernel(
      node, description,
      {onednn::primitive_input(DNNL_ARG_DIFF_DST, 0, description.diff_dst_desc()),
       onednn::primitive_output(DNNL_ARG_DIFF_SRC, 0, description.diff_src_desc())});
}

const Op kAvgPoolGradient{.name = "avg_pool_gradient",
                          .infer = infer_avg_pool_gradient,
                          .gradient = gradient_of_avg_pool_gradient,
                          .compile = compile_avg_pool_gradient};

}  // namespace

Tensor avg_pool_gradient(const Shape& x_shape, const Tensor& dy, const Pool2dOptions& options,
                         SourceLocation where) {
  Attributes attributes = pooling_attributes(options);
  attributes.set("x_shape", std::vector<int64_t>(x_shape.begin(), x_shape.end()));
  return make_tensor(kAvgPoolGradient, {dy}, std::move(attributes), where);
}

}  // namespace mox
