#include "moxing/model/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "moxing/model/internal/orthogonal_matrix.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

void require(bool valid, std::string_view initializer, std::string_view what, double given) {
  if (!valid || !std::isfinite(given) || std::fabs(given) > std::numeric_limits<float>::max())
    throw InvalidArgument(fmt::format("{}: {} must be a finite float32, got {}", initializer, what, given));
}

Initializer constant_fill(std::string description, float value) {
  return {std::move(description), [value](std::span<float> out, const Shape&, const RandomStream&) {
            std::fill(out.begin(), out.end(), value);
          }};
}

// Uniform in [-limit(fans), limit(fans)).
template <typename Limit>
Initializer scaled_uniform(std::string description, Limit limit) {
  return {std::move(description),
          [limit](std::span<float> out, const Shape& shape, const RandomStream& random) {
            const float bound = limit(compute_fans(shape));
            random.fill_uniform(out, 0, -bound, bound);
          }};
}

template <typename Stddev>
Initializer scaled_normal(std::string description, Stddev stddev) {
  return {std::move(description),
          [stddev](std::span<float> out, const Shape& shape, const RandomStream& random) {
            random.fill_normal(out, 0, 0.0f, stddev(compute_fans(shape)));
          }};
}

}  // namespace

Fans compute_fans(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  if (shape.rank() == 2) return {static_cast<double>(shape[0]), static_cast<double>(shape[1])};
  double taps = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) taps *= shape[axis];
  return {static_cast<double>(shape[1]) * taps, static_cast<double>(shape[0]) * taps};
}

Initializer::Initializer(std::string description, Fill fill)
    : description_(std::move(description)), fill_(std::move(fill)) {
  if (!fill_) throw InvalidArgument("an initializer needs a function that fills, got an empty one");
}

Array Initializer::operator()(const Shape& shape, uint64_t seed, std::string_view variable) const {
  Array array(DType::kFloat32, shape);
  if (array.elements() == 0) return array;
  // The second hash keeps the stream apart from others that are keyed by the same name.
  const RandomStream random(seed, mix_hash(stable_hash(variable), stable_hash("initializer")));
  try {
    fill_(array.values<float>(), shape, random);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("variable \"{}\" of shape {} cannot be initialised with {}: {}",
                                      variable, to_string(shape), description_, error.what()));
  }
  return array;
}

Initializer zeros() { return constant_fill("zeros", 0); }

Initializer ones() { return constant_fill("ones", 1); }

Initializer constant_initializer(double value) {
  require(true, "constant_initializer", "the value", value);
  return constant_fill(fmt::format("constant({})", value), value);
}

Initializer random_uniform_initializer(double low, double high) {
  require(true, "random_uniform_initializer", "low", low);
  require(true, "random_uniform_initializer", "high", high);
  if (low > high)
    throw InvalidArgument(
        fmt::format("random_uniform_initializer: low must be <= high, got [{}, {})", low, high));
  return {fmt::format("uniform({}, {})", low, high),
          [low, high](std::span<float> out, const Shape&, const RandomStream& random) {
            random.fill_uniform(out, 0, low, high);
          }};
}

Initializer random_normal_initializer(double mean, double stddev) {
  require(true, "random_normal_initializer", "the mean", mean);
  require(stddev >= 0, "random_normal_initializer", "the standard deviation, which is >= 0,", stddev);
  return {fmt::format("normal({}, {})", mean, stddev),
          [mean, stddev](std::span<float> out, const Shape&, const RandomStream& random) {
            random.fill_normal(out, 0, mean, stddev);
          }};
}

Initializer truncated_normal_initializer(double mean, double stddev) {
  require(true, "truncated_normal_initializer", "the mean", mean);
  require(stddev >= 0, "truncated_normal_initializer", "the standard deviation, which is >= 0,", stddev);
  return {fmt::format("truncated_normal({}, {})", mean, stddev),
          [mean, stddev](std::span<float> out, const Shape&, const RandomStream& random) {
            random.fill_truncated_normal(out, 0, mean, stddev);
          }};
}

Initializer glorot_uniform() {
  return scaled_uniform("glorot_uniform", [](Fans fans) { return std::sqrt(6 / (fans.in + fans.out)); });
}

Initializer glorot_normal() {
  return scaled_normal("glorot_normal", [](Fans fans) { return std::sqrt(2 / (fans.in + fans.out)); });
}

Initializer he_uniform() {
  return scaled_uniform("he_uniform", [](Fans fans) { return std::sqrt(6 / fans.in); });
}

Initializer he_normal() {
  return scaled_normal("he_normal", [](Fans fans) { return std::sqrt(2 / fans.in); });
}

Initializer orthogonal(double gain) {
  require(true, "orthogonal", "the gain", gain);
  return {fmt::format("orthogonal({})", gain),
          [gain](std::span<float> out, const Shape& shape, const RandomStream& random) {
            if (shape.rank() < 2)
              throw InvalidArgument("an orthogonal matrix needs a shape of rank 2 or more");
            random.fill_normal(out, 0, 0, 1);
            internal::orthogonalize(out, shape[0], static_cast<int64_t>(out.size()) / shape[0], gain);
          }};
}

}  // namespace mox
