// Depthwise convolutions for which there are kernels of our own.
#pragma once

#include <vector>

#include "tests/ops/fusion/convolution_epilogue_testing.h"

namespace mox::test {

inline ConvolutionOptions depthwise_options(const ImageCase& c) {
  ConvolutionOptions options = c.options();
  options.groups = c.image[1];
  return options;
}
inline Shape filter_shape(const ImageCase& c) { return {c.filters, 1, c.window, c.window}; }

// Rows that fill several strips and that do not, blocks of pixels and the rest, every way to begin and to end
// with a stride of 2, images of a pixel.
inline std::vector<ImageCase> depthwise_cases() {
  return {{"several strips", {3, 16, 23, 18}, 16},
          {"a strip", {2, 24, 7, 7}, 24},
          {"narrow", {2, 8, 9, 1}, 8},
          {"low", {2, 8, 1, 9}, 8},
          {"a pixel", {5, 8, 1, 1}, 8},
          {"wide rows", {2, 8, 3, 150}, 8},
          {"explicit padding", {2, 16, 6, 5}, 16, 3, 1, Padding::of(1)},
          {"by two", {3, 16, 24, 22}, 16, 3, 2, Padding::of(1)},
          {"by two, odd", {3, 16, 13, 15}, 16, 3, 2, Padding::of(1)},
          {"by two, padding behind", {3, 16, 24, 22}, 16, 3, 2},
          {"by two, padding before rows alone", {3, 16, 13, 22}, 16, 3, 2},
          {"by two, small", {2, 8, 2, 2}, 8, 3, 2},
          {"by two, a pixel", {4, 8, 1, 1}, 8, 3, 2, Padding::of(1)}};
}

}  // namespace mox::test
