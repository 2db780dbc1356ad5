// How a convolution is cut into Winograd's tiles, and the layout of its images.
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "ops/convolution/winograd/internal/tiles.h"

namespace mox::winograd {

Problem forward_problem(const ConvolutionGeometry& geometry);
// The gradient of the image is the correlation of dy with the turned filter. With strides of 2 `before` stays
// that of the image.
Problem input_gradient_problem(const ConvolutionGeometry& geometry);

}  // namespace mox::winograd
