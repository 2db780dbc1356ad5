// What the nodes of convolutions read, by name (ops/support/named_inputs.h).
#pragma once

#include "ops/support/named_inputs.h"

namespace mox {

// Of conv2d, conv2d_bias and conv2d_transpose.
template <typename T>
struct ConvolutionInputs {
  T image = {}, filter = {};
  T bias = {};  // of conv2d_bias

  static constexpr auto names() {
    using S = ConvolutionInputs;
    return std::array<InputName<S, T>, 3>{{{"image", &S::image}, {"filter", &S::filter}, {"bias", &S::bias}}};
  }
};

// Of conv2d_input_gradient.
template <typename T>
struct ImageGradientInputs {
  T filter = {}, dy = {};

  static constexpr auto names() {
    using S = ImageGradientInputs;
    return std::array<InputName<S, T>, 2>{{{"filter", &S::filter}, {"dy", &S::dy}}};
  }
};

// Of conv2d_filter_gradient.
template <typename T>
struct FilterGradientInputs {
  T image = {}, dy = {};

  static constexpr auto names() {
    using S = FilterGradientInputs;
    return std::array<InputName<S, T>, 2>{{{"image", &S::image}, {"dy", &S::dy}}};
  }
};

}  // namespace mox
