// What the convolutions read that are one node with their neighbours, by name (ops/support/named_inputs.h).
#pragma once

#include "ops/support/named_inputs.h"

namespace mox {

// Of a convolution of what a normalisation with relu makes: the normalisation's inputs and statistics.
template <typename T>
struct OfNormalisedInputs {
  T filter = {}, x = {}, scale = {}, offset = {}, mean = {}, variance = {};
  T residual = {};  // may be missing

  static constexpr auto names() {
    using S = OfNormalisedInputs;
    return std::array<InputName<S, T>, 7>{{{"filter", &S::filter},
                                           {"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"mean", &S::mean},
                                           {"variance", &S::variance},
                                           {"residual", &S::residual}}};
  }
};

// Of the gradient of a convolution's image that goes on through the relu and the normalisation in front,
// whose x, scale, offset and statistics it takes.
template <typename T>
struct ReluGradientInputs {
  T filter = {}, dy = {}, x = {}, scale = {}, offset = {}, mean = {}, variance = {};
  T more = {};    // a gradient to be added first; may be missing
  T result = {};  // of the relu, where something was added to what was normalised; else missing

  static constexpr auto names() {
    using S = ReluGradientInputs;
    return std::array<InputName<S, T>, 9>{{{"filter", &S::filter},
                                           {"dy", &S::dy},
                                           {"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"mean", &S::mean},
                                           {"variance", &S::variance},
                                           {"more", &S::more},
                                           {"result", &S::result}}};
  }
};

// Of both gradients of a convolution between two normalisations: of the one behind, the gradient dz of what
// it gave, its sums and its input y; and those of ReluGradientInputs, of the one before.
template <typename T>
struct NormalisedGradientInputs {
  T filter = {}, dz = {}, sums = {}, y = {}, scale = {}, mean = {}, variance = {};
  T x = {}, scale_before = {}, offset_before = {}, mean_before = {}, variance_before = {};
  T more = {};   // a gradient to be added to that of the image; may be missing
  T image = {};  // of the convolution, where it is not relu of the normalised x; else missing

  static constexpr auto names() {
    using S = NormalisedGradientInputs;
    return std::array<InputName<S, T>, 14>{{{"filter", &S::filter},
                                            {"dz", &S::dz},
                                            {"sums", &S::sums},
                                            {"y", &S::y},
                                            {"scale", &S::scale},
                                            {"mean", &S::mean},
                                            {"variance", &S::variance},
                                            {"x", &S::x},
                                            {"scale_before", &S::scale_before},
                                            {"offset_before", &S::offset_before},
                                            {"mean_before", &S::mean_before},
                                            {"variance_before", &S::variance_before},
                                            {"more", &S::more},
                                            {"image", &S::image}}};
  }
};

}  // namespace mox
