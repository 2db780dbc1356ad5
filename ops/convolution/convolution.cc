#include "ops/convolution/convolution.h"

#include <fmt/format.h>

#include <string_view>

#include "ops/convolution/winograd/winograd.h"
#include "ops/processor/processor.h"
#include "ops/support/channel_view.h"

namespace mox {
namespace {

std::array<int64_t, 2> spatial(const TensorType& type) { return {type.shape[2], type.shape[3]}; }

ConvolutionGeometry geometry_of(const Attributes& attributes, const TensorType& x, const TensorType& w,
                                const WindowGeometry& window) {
  const Shape y{x.shape[0], w.shape[0], window[0].output, window[1].output};
  return {x, w, {x.dtype, y}, attributes.get<int64_t>("groups"), window};
}

}  // namespace

Attributes convolution_attributes(const ConvolutionOptions& options) {
  Attributes attributes = window_attributes(options.strides, options.dilations, options.padding);
  attributes.set("groups", options.groups);
  return attributes;
}

ConvolutionOptions convolution_options(const Attributes& attributes) {
  return {.strides = pair_of(attributes.get<std::vector<int64_t>>("strides")),
          .dilations = pair_of(attributes.get<std::vector<int64_t>>("dilations")),
          .groups = attributes.get<int64_t>("groups"),
          .padding = padding_of(attributes)};
}

ConvolutionGeometry resolve_convolution(const Attributes& attributes, const TensorType& x,
                                        const TensorType& w) {
  return geometry_of(attributes, x, w, resolve_window(attributes, spatial(x), spatial(w)));
}

ConvolutionGeometry check_convolution(const OpCall& call, const TensorType& x, const TensorType& w) {
  call.require(x.dtype == DType::kFloat32 && w.dtype == DType::kFloat32, "float32 images and filters");
  call.require(x.shape.rank() == 4, "images [batch, channels, height, width]");
  call.require(w.shape.rank() == 4, "filters [out_channels, channels / groups, height, width]");
  const int64_t groups = call.attributes.get<int64_t>("groups");
  call.require(groups >= 1, "at least one group");
  if (w.shape[1] > x.shape[1] || x.shape[1] % groups != 0 || x.shape[1] / groups != w.shape[1])
    call.fail(
        fmt::format("filters {} with as many input channels as a group of the image {} has ({} group(s))",
                    to_string(w.shape), to_string(x.shape), groups));
  if (w.shape[0] % groups != 0)
    call.fail(fmt::format("output channels that are a multiple of the {} groups, but the filters {} have {}",
                          groups, to_string(w.shape), w.shape[0]));
  return geometry_of(call.attributes, x, w, check_window(call, spatial(x), spatial(w)));
}

namespace onednn {

namespace {

dnnl::memory::desc image_descriptor(const TensorType& image, bool channels_last) {
  return channels_last ? channels_last_descriptor(image) : any_descriptor(image);
}

// In the layouts of the images that the forward pass has, if oneDNN has a kernel made for them.
dnnl::convolution_backward_data::primitive_desc describe_image_gradient(const ConvolutionDescriptors& d) {
  const auto forward = describe_forward(d);
  const auto described = [&](const dnnl::memory::desc& x, const dnnl::memory::desc& y) {
    return describe_gradient<dnnl::convolution_backward_data>(forward, d.algorithm, x, d.w, y, d.strides,
                                                              d.dilations, d.before, d.after);
  };
  if (kGradientsMayTurnImages) {
    auto kept = described(forward.src_desc(), forward.dst_desc());
    if (std::string_view(kept.impl_info_str()).starts_with("jit")) return kept;
  }
  return described(d.x, d.y);
}

}  // namespace

bool keeps_channels_last(const ConvolutionGeometry& geometry, const TensorType& image,
                         const Layout& offered) {
  constexpr int64_t kBlock = 16;  // of channels, in oneDNN's kernels
  const int64_t channels = geometry.x.shape[1];
  return geometry.groups == channels && geometry.y.shape[1] == channels && channels % kBlock == 0 &&
         geometry.x.dtype == DType::kBFloat16 && geometry.y.dtype == DType::kBFloat16 &&
         processor().bfloat16_products && !offered.is_plain() && offered.blocks().empty() &&
         channel_view(image, offered);
}

ConvolutionDescriptors::ConvolutionDescriptors(const ConvolutionGeometry& geometry, bool channels_last)
    : x(image_descriptor(geometry.x, channels_last)),
      w(any_descriptor(geometry.w)),
      y(image_descriptor(geometry.y, channels_last)) {
  if (geometry.groups > 1) {
    const Shape& s = geometry.w.shape;
    w = any_descriptor({geometry.w.dtype, {geometry.groups, s[0] / geometry.groups, s[1], s[2], s[3]}});
  }
  for (const WindowAxis& axis : geometry.window) {
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation - 1);  // oneDNN counts the pixels in between
    before.push_back(axis.before);
    after.push_back(axis.after);
  }
}

dnnl::convolution_forward::primitive_desc describe_forward(const ConvolutionDescriptors& d, bool has_bias) {
  using Forward = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  if (!has_bias)
    return describe<Forward>(kind, d.algorithm, d.x, d.w, d.y, d.strides, d.dilations, d.before, d.after);
  const dnnl::memory::desc bias({extents_of(d.y)[1]}, dnnl::memory::data_type::f32,
                                dnnl::memory::format_tag::a);
  return describe<Forward>(kind, d.algorithm, d.x, d.w, bias, d.y, d.strides, d.dilations, d.before, d.after);
}

bool takes_winograd(const KernelRequest& request, const ConvolutionGeometry& geometry) {
  return !request.hints.has(kDirectConvolutions) && !request.node.attributes.has(kSumsDirectly) &&
         winograd_pays(geometry);
}

Kernel forward_kernel(const KernelRequest& request, const ConvolutionGeometry& geometry, bool has_bias) {
  const Node& node = request.node;
  if (geometry.x.shape.elements() == 0 || geometry.w.shape.elements() == 0 ||
      geometry.y.shape.elements() == 0)
    return zero_kernel(node);
  if (takes_winograd(request, geometry))
    return winograd_forward_kernel(node, geometry, has_bias, request.team);
  const ConvolutionDescriptors d(geometry,
                                 keeps_channels_last(geometry, geometry.x, request.input_layouts[0]));
  const auto description = describe_forward(d, has_bias);
  std::vector<PrimitiveArgument> arguments = {
      primitive_input(DNNL_ARG_SRC, 0, description.src_desc()),
      primitive_input(DNNL_ARG_WEIGHTS, 1, description.weights_desc()),
      primitive_output(DNNL_ARG_DST, 0, description.dst_desc())};
  if (has_bias) arguments.push_back(primitive_input(DNNL_ARG_BIAS, 2, description.bias_desc()));
  Kernel kernel = primitive_kernel(node, description, std::move(arguments));
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

Kernel input_gradient_kernel(const KernelRequest& request, const ConvolutionGeometry& geometry, int w_input,
                             int y_input) {
  const Node& node = request.node;
  if (has_empty_value(node)) return zero_kernel(node);
  if (takes_winograd(request, geometry))
    return winograd_input_gradient_kernel(node, geometry, w_input, y_input, request.team);
  const Layout& offered = request.input_layouts[y_input];
  const ConvolutionDescriptors d(geometry, keeps_channels_last(geometry, geometry.y, offered));
  const auto description = describe_image_gradient(d);
  Kernel kernel = primitive_kernel(node, description,
                                   {primitive_input(DNNL_ARG_WEIGHTS, w_input, description.weights_desc()),
                                    primitive_input(DNNL_ARG_DIFF_DST, y_input, description.diff_dst_desc()),
                                    primitive_output(DNNL_ARG_DIFF_SRC, 0, description.diff_src_desc())});
  kernel.floating_point_operations = geometry.floating_point_operations();
  return kernel;
}

}  // namespace onednn
}  // namespace mox
