// Initializers: the first value of a variable.
//
// An initial value is a function of (initializer, shape, seed, variable name): it does not depend on the
// order in which variables are made, nor on threads or ranks. All give float32.
//
// Fans. "fan_in" and "fan_out" are the numbers of inputs and outputs that a weight of this shape connects:
//   [in, out]                 (dense, embedding)  fan_in = in             fan_out = out
//   [out, in / groups, k...]  (convolution)       fan_in = in/groups * k  fan_out = out * k    (k: all taps)
//   [n]                                           fan_in = fan_out = n
//   []                                            fan_in = fan_out = 1
// As in PyTorch, fan_out of a grouped convolution counts all `out` channels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/random.h"
#include "runtime/tensor/array.h"
#include "runtime/tensor/shape.h"

namespace mox {

struct Fans {
  double in = 1, out = 1;
};
Fans compute_fans(const Shape& shape);

class Initializer {
 public:
  // Writes all of `out`, which has shape.elements() > 0 elements, as a function of the stream and
  // the shape alone.
  using Fill = std::function<void(std::span<float> out, const Shape& shape, const RandomStream& random)>;

  // `description` is one line for people, for example "normal(0, 0.01)".
  Initializer(std::string description, Fill fill);

  // The first value of the variable called `variable`. Throws InvalidArgument for a shape that the
  // initializer cannot fill; the text names the variable.
  Array operator()(const Shape& shape, uint64_t seed, std::string_view variable) const;

  const std::string& description() const { return description_; }

 private:
  std::string description_;
  Fill fill_;
};

// All throw InvalidArgument for parameters that are not finite or out of range.
Initializer zeros();
Initializer ones();
Initializer constant_initializer(double value);
Initializer random_uniform_initializer(double low, double high);    // in [low, high); low <= high
Initializer random_normal_initializer(double mean, double stddev);  // stddev >= 0
// Normal values farther than two `stddev` from the mean are drawn anew, so the result's own deviation
// is 0.88 stddev.
Initializer truncated_normal_initializer(double mean, double stddev);

// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
// networks" (AISTATS 2010):
Initializer glorot_uniform();  // in +-sqrt(6 / (fan_in + fan_out))
Initializer glorot_normal();   // mean 0, stddev sqrt(2 / (fan_in + fan_out)), not truncated

// He et al., "Delving Deep into Rectifiers" (ICCV 2015), for layers that end with a ReLU:
Initializer he_uniform();  // in +-sqrt(6 / fan_in)
Initializer he_normal();   // mean 0, stddev sqrt(2 / fan_in), not truncated

// `gain` times a uniformly distributed matrix with orthonormal rows or columns (whichever are fewer): the Q
// of the QR decomposition of a normal matrix, with the sign of R's diagonal. A shape of rank >= 2 is seen as
// the matrix [shape[0], all others]. Time grows with rows * columns * min(rows, columns). Saxe, McClelland
// and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural
// networks" (ICLR 2014).
Initializer orthogonal(double gain = 1);

}  // namespace mox
