// What the pooling ops share.
#pragma once

#include "ops/internal/dnnl.h"
#include "ops/internal/window.h"
#include "ops/pool2d_options.h"

namespace mox {

Attributes pooling_attributes(const Pool2dOptions& options);
Pool2dOptions pooling_options(const Attributes& attributes);

// The type of y. Throws InvalidArgument where image and options do not fit.
TensorType check_pooling(const OpCall& call, const TensorType& x);

// The options that make one window of the whole image. Throws InvalidArgument, naming `op`, if `x` is no
// image.
Pool2dOptions whole_image(const Tensor& x, std::string_view op, SourceLocation where);

namespace onednn {

PoolingForward::primitive_desc describe_pooling(const Attributes& attributes, const TensorType& x,
                                                const TensorType& y, const dnnl::memory::desc& x_descriptor,
                                                dnnl::algorithm algorithm, dnnl::prop_kind kind);

// The gradient of x for a forward pooling; its layouts are those of the forward description.
PoolingBackward::primitive_desc describe_pooling_backward(const Attributes& attributes, const TensorType& x,
                                                          const PoolingForward::primitive_desc& forward,
                                                          dnnl::algorithm algorithm);

dnnl::algorithm average_algorithm(const Attributes& attributes);

// A descriptor of the image in a layout of the same kind (plain, channels last, blocks of channels) as
// `like`, which is a layout of `like_type`; plain if it is of another kind.
dnnl::memory::desc image_descriptor_like(const TensorType& image, const TensorType& like_type,
                                         const Layout& like);

// The layout of that descriptor; plain for a value without elements.
Layout image_layout_like(const TensorType& image, const TensorType& like_type, const Layout& like);

}  // namespace onednn
}  // namespace mox
