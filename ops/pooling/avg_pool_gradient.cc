#include <fmt/format.h>

#include <algorithm>
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

struct Pixels {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};
// Those of the image in a window.
Pixels pixels_of(const WindowAxis& axis, int64_t window) {
  const int64_t first = window * axis.stride - axis.before;
  const int64_t begin = std::clamp<int64_t>(first, 0, axis.input);
  return {.begin = begin, .end = std::clamp(first + axis.size, begin, axis.input)};
}

// Of one block of channels: the pixels of each window take their shares of its dy, in the windows' order.
// kWidth: of the block; 0: view.width.
template <int kWidth>
void share_windows(const ChannelView& view, const WindowGeometry& windows, bool counts_padding,
                   const float* dy, float* dx) {
  const int64_t width = kWidth > 0 ? kWidth : view.width;
  const auto& [rows, columns] = windows;
  std::fill_n(dx, view.inner * width, 0.0f);
  for (int64_t i = 0; i < rows.output; ++i)
    for (int64_t j = 0; j < columns.output; ++j, dy += width) {
      const Pixels down = pixels_of(rows, i), across = pixels_of(columns, j);
      const float pixels = counts_padding ? rows.size * columns.size : down.count() * across.count();
      for (int64_t row = down.begin; row < down.end; ++row)
        for (int64_t column = across.begin; column < across.end; ++column) {
          float* to = dx + (row * columns.input + column) * width;
          for (int64_t c = 0; c < width; ++c) to[c] += dy[c] / pixels;
        }
    }
}

struct Image {
  TensorType type;
  Layout layout;
  ChannelView view;
};

// Any windows, float32: dx from dy, whose layout has the same blocks of channels.
Kernel windows_kernel(const Node& node, const Image& dx_image, const Layout& dy_layout) {
  const WindowGeometry windows = pooling_window(node.attributes, dx_image.type);
  const ChannelView& view = dx_image.view;
  const bool counts_padding = node.attributes.get<bool>("count_include_pad");
  const auto share = view.width == 8 ? &share_windows<8> : &share_windows<0>;
  Kernel kernel =
      plain_kernel(node, [view, windows, counts_padding, share](const KernelArguments& arguments) {
        const float* dy = arguments.input<float>(0);
        float* dx = arguments.output<float>(0);
        const int64_t pooled = windows[0].output * windows[1].output * view.width,
                      image = view.inner * view.width;
        arguments.team.parallel_for(view.outer * view.blocks, 1, [&](int64_t first, int64_t last) {
          for (int64_t plane = first; plane < last; ++plane)
            share(view, windows, counts_padding, dy + plane * pooled, dx + plane * image);
        });
      });
  kernel.input_layouts[0] = dy_layout;
  kernel.output_layouts[0] = dx_image.layout;
  kernel.floating_point_operations = view.outer * view.padded_channels() * windows[0].output *
                                     windows[1].output * windows[0].size * windows[1].size;
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
  // For blocks of channels that are wider than the vectors it has no kernel but its reference, and for those
  // of 8 where one window is the whole image.
  if (x.dtype == DType::kFloat32 && std::string_view(description.impl_info_str()).starts_with("ref")) {
    const Layout layout = onednn::layout_of(x, description.diff_src_desc()),
                 pooled = onednn::layout_of(y, description.diff_dst_desc());
    const auto view = channel_view(x, layout), pooled_view = channel_view(y, pooled);
    if (view && view->padded_channels() == x.shape[1]) {
      if (covers_the_image(node.attributes, x)) return sharing_kernel(node, x, layout, *view);
      if (pooled_view && pooled_view->blocks == view->blocks && pooled_view->width == view->width)
        return windows_kernel(node, {x, layout, *view}, pooled);
    }
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
