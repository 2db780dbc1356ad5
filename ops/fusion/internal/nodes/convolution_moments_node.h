// A convolution that also sums up the moments of its result.
#pragma once

#include "runtime/graph/op.h"

namespace mox {

// ConvolutionInputs without a bias; outputs y and float32 [groups, 3, channels]: how many pixels of y each of
// the groups has into which they are cut, their mean, and the sum of their squared distances from it.
// Attributes: those of the convolution and kGroupsOfPixels. Made by convolution_moments_rule.
const Op& conv2d_moments_op();

}  // namespace mox
