// How a convolution is cut into Winograd's tiles, and the layout of its images.
#pragma once

#include "ops/internal/convolution.h"
#include "ops/internal/winograd_tiles.h"

namespace mox::winograd {

Problem forward_problem(const ConvolutionGeometry& geometry);
// The gradient of the image is the correlation of dy with the turned filter.
Problem backward_input_problem(const ConvolutionGeometry& geometry);
// [batch][channels / 16][height][width][16].
Layout channel_blocked(const TensorType& image);

}  // namespace mox::winograd
