// How a convolution is cut into Winograd's tiles, and the layout of its images.
#pragma once

#include "ops/internal/convolution.h"
#include "ops/internal/winograd_tiles.h"

namespace mox::winograd {

Problem forward_problem(const ConvolutionGeometry& geometry);
// The gradient of the image is the correlation of dy with the turned filter. With strides of 2 `before` stays that of the image.
Problem backward_input_problem(const ConvolutionGeometry& geometry);
// Tiles at a time, a multiple of `step`: `tiles` of them in as few even chunks as can be with about `most` in each.
int64_t even_chunk(int64_t tiles, int64_t most, int64_t step);
// [batch][channels / 16][height][width][16].
Layout channel_blocked(const TensorType& image);

}  // namespace mox::winograd
