// The arithmetic of windows that slide over images, shared by convolutions and pooling.
#pragma once

#include <array>

#include "ops/convolution/geometry/padding.h"
#include "runtime/graph/op.h"

namespace mox {

// One of the two spatial axes, resolved.
struct WindowAxis {
  int64_t input = 0, output = 0;
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding

  bool operator==(const WindowAxis&) const = default;
};
// Height and width.
using WindowGeometry = std::array<WindowAxis, 2>;

// An attribute of two numbers, height's and width's.
inline std::array<int64_t, 2> pair_of(const std::vector<int64_t>& values) { return {values[0], values[1]}; }

// The attributes "strides", "dilations", "padding" and "padding_sizes" that `resolve_window` reads.
Attributes window_attributes(const std::array<int64_t, 2>& strides, const std::array<int64_t, 2>& dilations,
                             const Padding& padding);

// The padding that the attributes say.
Padding padding_of(const Attributes& attributes);

// The geometry of windows of `size` over an image of `input` pixels. Nothing is checked: only for
// nodes that exist.
WindowGeometry resolve_window(const Attributes& attributes, std::array<int64_t, 2> input,
                              std::array<int64_t, 2> size);

// The same for a call: throws InvalidArgument where strides, dilations, padding or the window's size make no
// sense, or the window is larger than the padded image.
WindowGeometry check_window(const OpCall& call, std::array<int64_t, 2> input, std::array<int64_t, 2> size);

// The type of the image whose gradient a node computes, by its attribute "x_shape".
TensorType forward_image_type(const Attributes& attributes);

}  // namespace mox
