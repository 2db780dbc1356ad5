// Ops of one tensor, element by element: what every one of them is tried for. Each room instantiates
// UnaryTest with its own; the tests are in tests/ops/arithmetic/elementwise_test.cc, of whose program they
// are all.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <ostream>
#include <span>
#include <string>

#include "tests/support/evaluate.h"

namespace mox::test {

struct UnaryCase {
  std::string name;
  std::function<Tensor(const Tensor&)> op;
  std::function<double(double)> reference;
  float low = -2, high = 2;  // where the op is smooth and the reference exact enough
  bool differentiable = true;
};

inline void PrintTo(const UnaryCase& value, std::ostream* os) { *os << value.name; }

class UnaryTest : public ::testing::TestWithParam<UnaryCase> {
 protected:
  Tensor apply(std::span<const Tensor> x) const { return GetParam().op(x[0]); }
  Build build() const {
    return [this](std::span<const Tensor> x) { return apply(x); };
  }
};

inline std::string name_of_case(const ::testing::TestParamInfo<UnaryCase>& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace mox::test
