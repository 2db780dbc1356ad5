#include "ops/pooling/internal/pooling.h"

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

PoolingBackward::primitive_desc describe_pooling_gradient(const Attributes& attributes, const TensorType& x,
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

}  // namespace onednn
}  // namespace mox
