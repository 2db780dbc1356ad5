// A sum of doubles without rounding: the same bits in whatever order, and in whatever parts, it was added up.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mox::metrics {

// The exact sum of the numbers added so far, kept as doubles that do not overlap (mostly one to three of
// them). Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates"
// (1997), section 2.4; the rounding is that of Python's math.fsum. Not safe for threads.
class ExactSum {
 public:
  void add(double number);
  // The exact product, not the rounded one (unless it is so small that its last digits are below 1e-308).
  void add_product(double a, double b);
  void add_product(double a, double b, double c);
  void add(const ExactSum& other);

  // The sum, rounded once to the nearest double. An infinity or a NaN among the numbers gives what IEEE
  // arithmetic gives for them; a sum whose magnitude has passed the largest double is infinite from then on.
  double value() const;
  // What value() has rounded away, rounded itself. Both together are a function of the exact sum alone.
  double remainder() const;
  bool is_zero() const { return parts_.empty() && special_ == 0; }

  // What the sum consists of, for sending it elsewhere: adding all of them up gives it again.
  std::vector<double> parts() const;

 private:
  double rounded() const;

  std::vector<double> parts_;  // finite, in increasing magnitude, none of them zero
  double special_ = 0;         // the sum of what is not finite
};

}  // namespace mox::metrics
