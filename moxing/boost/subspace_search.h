// A quasi-Newton method in the few coordinates of a subspace: which way to go, and how its picture of the
// curvature follows.
//
// B begins as the identity and follows the inverse Hessian by the rule of Broyden, Fletcher, Goldfarb and
// Shanno (Nocedal and Wright, Numerical Optimization, 2nd ed., eq. 6.17): with y = g - g_last and y's >
// 1e-20,
//   B <- (I - y s'/(y's))' B (I - y s'/(y's)) + s s'/(y's).
// Numbers are double: k is small, and 1e-20 is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mox::boost {

class SubspaceSearch {
 public:
  explicit SubspaceSearch(int64_t dimensions);

  int64_t dimensions() const { return s_.size(); }

  // Begins a step with the gradient's coordinates; returns the direction d = -B g.
  const std::vector<double>& begin(std::span<const double> gradient);
  // g'd of the step that has begun: what the loss falls by for each unit of a small step.
  double slope() const { return slope_; }
  // The step was d * length.
  void accept(double length);
  // There was no step: B and the gradient that is remembered are again what they were before `begin`.
  void withdraw();

  struct State {
    std::vector<double> b;              // row-major
    std::vector<double> last_gradient;  // empty before the first step
    std::vector<double> last_step;      // s
    bool operator==(const State&) const = default;
  };
  State state() const { return {b_, last_gradient_, s_}; }
  // Throws DataError for a state of other dimensions.
  void restore(const State& state);

 private:
  void update(std::span<const double> gradient);

  std::vector<double> b_, last_gradient_, s_, direction_;
  std::vector<double> b_before_, last_gradient_before_;
  double slope_ = 0;
};

}  // namespace mox::boost
