// How much Winograd's convolutions round.
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"

namespace mox {

enum class ConvolutionResult { kOutput, kInputGradient, kFilterGradient };

// The bound that the kernels of winograd.h keep to: their largest error, as a part of the largest magnitude
// of the result, for images, filters and gradients whose numbers do not depend on each other. Where terms
// cancel in a way that chance does not bring about, it is a part of what the result would be if they did not.
//
// In float32 it is
//   A * 2^-24 * sqrt((16 + L) / 2).
// A is how much the transforms enlarge an error: with independent numbers, the largest root of the sum over a
// tile's points of (a * |b| * |g|)^2 over the number of taps, for a row a of A^T and the rows b of B^T and g
// of G that belong to a point (internal/tiles.h). L is how many numbers of about the same size are added up
// one after the other: addends in a row, and sums of them. Over channels (output and gradient of the image)
// that is their number c, and from 128 x 128 channels on, where sums are cut, min(c, 192) + c / 64. Over the
// t tiles of a batch (gradient of the filter) it is min(t, 36) + 8 + t / 96, and min(t, 192) + t / 64 where
// Problem::gradient_is_wide. 16 is for the transforms. Measured errors are at most two thirds of it, and
// mostly two fifths or less (tests/ops/convolution/winograd/rounding_test.cc). The bound is that of the
// narrowest vectors: it is the same for all instructions.
//
// In bfloat16 it is 0.01, for the transforms are rounded to 8 bits, whatever the shape.
//
// Only where winograd_pays.
double winograd_error(const ConvolutionGeometry& geometry, ConvolutionResult result);

}  // namespace mox
