// What the pooling ops share.
#pragma once

#include "ops/convolution/geometry/window.h"
#include "ops/pooling/pooling.h"
#include "ops/processor/onednn.h"

namespace mox {

Attributes pooling_attributes(const Pool2dOptions& options);
Pool2dOptions pooling_options(const Attributes& attributes);

// The type of y. Throws InvalidArgument where image and options do not fit.
TensorType check_pooling(const OpCall& call, const TensorType& x);

// The windows of a node, over an image `x`.
inline WindowGeometry pooling_window(const Attributes& attributes, const TensorType& x) {
  const auto& window = attributes.get<std::vector<int64_t>>("window");
  return resolve_window(attributes, {x.shape[2], x.shape[3]}, {window[0], window[1]});
}

// The options that make one window of the whole image. Throws InvalidArgument, naming `op`, if
// `x` is no image.
Pool2dOptions whole_image(const Tensor& x, std::string_view op, SourceLocation where);

namespace onednn {

PoolingForward::primitive_desc describe_pooling(const Attributes& attributes, const TensorType& x,
                                                const TensorType& y, const dnnl::memory::desc& x_descriptor,
                                                dnnl::algorithm algorithm, dnnl::prop_kind kind);

// The gradient of x for a forward pooling; its layouts are those of the forward description.
PoolingBackward::primitive_desc describe_pooling_gradient(const Attributes& attributes, const TensorType& x,
                                                          const PoolingForward::primitive_desc& forward,
                                                          dnnl::algorithm algorithm);

dnnl::algorithm average_algorithm(const Attributes& attributes);

}  // namespace onednn
}  // namespace mox
