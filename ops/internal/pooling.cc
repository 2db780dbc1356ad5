#include "ops/internal/pooling.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox {
namespace {

struct PoolingArguments {
  dnnl::memory::dims strides, window, dilations = {0, 0}, before, after;
};
PoolingArguments arguments_of(const Attributes& attributes, const TensorType& x) {
  PoolingArguments result;
  const auto window = pair_of(attributes.get<std::vector<int64_t>>("window"));
  for (const WindowAxis& axis : resolve_window(attributes, {x.shape[2], x.shape[3]}, window)) {
    result.strides.push_back(axis.stride);
    result.window.push_back(axis.size);
    result.before.push_back(axis.before);
    result.after.push_back(axis.after);
  }
  return result;
}

}  // namespace

Attributes pooling_attributes(const Pool2dOptions& options) {
  Attributes attributes = window_attributes(options.strides, {1, 1}, options.padding);
  attributes.set("window", std::vector<int64_t>(options.window.begin(), options.window.end()));
  attributes.set("count_include_pad", options.count_include_pad);
  return attributes;
}

Pool2dOptions pooling_options(const Attributes& attributes) {
  return {.window = pair_of(attributes.get<std::vector<int64_t>>("window")),
          .strides = pair_of(attributes.get<std::vector<int64_t>>("strides")),
          .padding = padding_of(attributes),
          .count_include_pad = attributes.get<bool>("count_include_pad")};
}

TensorType check_pooling(const OpCall& call, const TensorType& x) {
  call.require(x.dtype == DType::kFloat32, "a float32 image");
  call.require(x.shape.rank() == 4, "an image [batch, channels, height, width]");
  const auto window = pair_of(call.attributes.get<std::vector<int64_t>>("window"));
  const WindowGeometry geometry = check_window(call, {x.shape[2], x.shape[3]}, window);
  for (const WindowAxis& axis : geometry)
    if (axis.before >= axis.size || axis.after >= axis.size)
      call.fail(fmt::format(
          "padding smaller than the window (before {}, after {}, window {}), so that every window "
          "holds a pixel",
          axis.before, axis.after, axis.size));
  return {x.dtype, {x.shape[0], x.shape[1], geometry[0].output, geometry[1].output}};
}

Pool2dOptions whole_image(const Tensor& x, std::string_view op, SourceLocation where) {
  if (x.defined() && x.shape().rank() != 4)
    throw InvalidArgument(fmt::format("{} ({}): expected an image [batch, channels, height, width], got {}",
                                      op, to_string(where), to_string(x.type())));
  const std::array<int64_t, 2> extent =
      x.defined() ? std::array{x.shape()[2], x.shape()[3]} : std::array<int64_t, 2>{};
  return {.window = extent, .strides = {1, 1}};
}

namespace onednn {

PoolingForward::primitive_desc describe_pooling(const Attributes& attributes, const TensorType& x,
                                                const TensorType& y, const dnnl::memory::desc& x_descriptor,
                                                dnnl::algorithm algorithm, dnnl::prop_kind kind) {
  const PoolingArguments a = arguments_of(attributes, x);
  return describe<PoolingForward>(kind, algorithm, x_descriptor, any_descriptor(y), a.strides, a.window,
                                  a.dilations, a.before, a.after);
}

PoolingBackward::primitive_desc describe_pooling_backward(const Attributes& attributes, const TensorType& x,
                                                          const PoolingForward::primitive_desc& forward,
                                                          dnnl::algorithm algorithm) {
  const PoolingArguments a = arguments_of(attributes, x);
  return describe_gradient<PoolingBackward>(forward, algorithm, forward.src_desc(), forward.dst_desc(),
                                            a.strides, a.window, a.dilations, a.before, a.after);
}

dnnl::algorithm average_algorithm(const Attributes& attributes) {
  return attributes.get<bool>("count_include_pad") ? dnnl::algorithm::pooling_avg_include_padding
                                                   : dnnl::algorithm::pooling_avg_exclude_padding;
}

dnnl::memory::desc image_descriptor_like(const TensorType& image, const TensorType& like_type,
                                         const Layout& like) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::data_type type = data_type_of(image.dtype);
  const dnnl::memory::dims dims(image.shape.begin(), image.shape.end());
  // A 1 x 1 image of whole blocks is at once plain, channels last and blocked; blocks are what convolutions
  // go on with.
  const bool is_pixel = like_type.shape[2] == 1 && like_type.shape[3] == 1 && like.is_plain();
  for (const Tag tag : {Tag::nChw16c, Tag::nChw8c, Tag::nhwc}) {
    const dnnl::memory::desc candidate(dnnl::memory::dims(like_type.shape.begin(), like_type.shape.end()),
                                       data_type_of(like_type.dtype), tag);
    if (like.is_plain() && !is_pixel) break;
    if (layout_of(like_type, candidate) == like) return {dims, type, tag};
  }
  return plain_descriptor(image);
}

Layout image_layout_like(const TensorType& image, const TensorType& like_type, const Layout& like) {
  if (image.shape.elements() == 0) return Layout::plain(image);
  return layout_of(image, image_descriptor_like(image, like_type, like));
}

}  // namespace onednn
}  // namespace mox
