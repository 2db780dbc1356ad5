// What the nodes of batch normalisation read, by name (ops/support/named_inputs.h).
#pragma once

#include "ops/support/named_inputs.h"

namespace mox::normalisation {

// Of batch_norm, and of what fusion makes of it.
template <typename T>
struct ForwardInputs {
  T x = {}, scale = {}, offset = {};
  T moments = {};   // float32 [groups, 3, channels], as conv2d_moments gives them; may be missing
  T residual = {};  // of x's type, added before the activation; may be missing

  bool operator==(const ForwardInputs&) const = default;
  static constexpr auto names() {
    using S = ForwardInputs;
    return std::array<InputName<S, T>, 5>{{{"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"moments", &S::moments},
                                           {"residual", &S::residual}}};
  }
};

// Of nodes that normalise by given statistics: batch_norm_inference, and those that do it once more.
template <typename T>
struct StatisticsInputs {
  T x = {}, scale = {}, offset = {}, mean = {}, variance = {};

  static constexpr auto names() {
    using S = StatisticsInputs;
    return std::array<InputName<S, T>, 5>{{{"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"mean", &S::mean},
                                           {"variance", &S::variance}}};
  }
};

// Of batch_norm_gradient.
template <typename T>
struct GradientInputs {
  T x = {}, scale = {}, mean = {}, variance = {}, dy = {};

  static constexpr auto names() {
    using S = GradientInputs;
    return std::array<InputName<S, T>, 5>{
        {{"x", &S::x}, {"scale", &S::scale}, {"mean", &S::mean}, {"variance", &S::variance}, {"dy", &S::dy}}};
  }
};

// Of the gradients that fusion makes of it, and of the kernel of all three.
template <typename T>
struct FusedGradientInputs {
  T x = {}, scale = {};
  T offset = {};  // where there is an activation
  T mean = {}, variance = {};
  T dy = {};       // of the activation's result
  T dy_more = {};  // to be added to it; may be missing
  T y = {};        // the activation's result, where it says what passed; may be missing
  // float32 [groups, 2, channels], of dy and of dy * (x - mean) by groups of pixels; may be missing
  T sums = {};

  static constexpr auto names() {
    using S = FusedGradientInputs;
    return std::array<InputName<S, T>, 9>{{{"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"mean", &S::mean},
                                           {"variance", &S::variance},
                                           {"dy", &S::dy},
                                           {"dy_more", &S::dy_more},
                                           {"y", &S::y},
                                           {"sums", &S::sums}}};
  }
};

}  // namespace mox::normalisation
