// What the nodes of matrix products read, by name (ops/support/named_inputs.h).
#pragma once

#include "ops/support/named_inputs.h"

namespace mox {

// Of matmul and matmul_bias.
template <typename T>
struct MatmulInputs {
  T a = {}, b = {};
  T bias = {};  // of matmul_bias

  static constexpr auto names() {
    using S = MatmulInputs;
    return std::array<InputName<S, T>, 3>{{{"a", &S::a}, {"b", &S::b}, {"bias", &S::bias}}};
  }
};

}  // namespace mox
