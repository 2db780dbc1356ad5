// How a convolution is cut into Winograd's tiles, and the layout of its images.
#pragma once

#include <string>
#include <string_view>

#include "ops/convolution/geometry/convolution_geometry.h"
#include "ops/convolution/winograd/internal/tiles.h"

namespace mox::winograd {

Problem forward_problem(const ConvolutionGeometry& geometry);
// The gradient of the image is the correlation of dy with the turned filter. With strides of 2 `before` stays
// that of the image.
Problem input_gradient_problem(const ConvolutionGeometry& geometry);

// In blocks of as many channels as the problem's vectors have lanes.
Layout blocked_layout(const Problem& problem, const TensorType& image);

// What the plan calls the kernel: "winograd6x6_wide:avx2", where the form is "_wide".
std::string implementation_of(const Problem& problem, std::string_view form);

}  // namespace mox::winograd
