#include "moxing/boost/subspace_search.h"

#include <fmt/format.h>

#include <Eigen/Core>

#include "runtime/base/error.h"

namespace mox::boost {
namespace {

using SquareMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Eigen::VectorXd> as_vector(std::span<const double> values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

}  // namespace

SubspaceSearch::SubspaceSearch(int64_t dimensions)
    : b_(dimensions * dimensions), s_(dimensions), direction_(dimensions) {
  Eigen::Map<SquareMatrix>(b_.data(), dimensions, dimensions).setIdentity();
}

void SubspaceSearch::update(std::span<const double> gradient) {
  const Eigen::Index k = s_.size();
  const auto s = as_vector(s_);
  const Eigen::VectorXd y = as_vector(gradient) - as_vector(last_gradient_);
  const double curvature = y.dot(s);
  if (!(curvature > 1e-20)) return;
  Eigen::Map<SquareMatrix> b(b_.data(), k, k);
  const SquareMatrix v = SquareMatrix::Identity(k, k) - y * s.transpose() / curvature;
  b = (v.transpose() * b * v + s * s.transpose() / curvature).eval();
}

const std::vector<double>& SubspaceSearch::begin(std::span<const double> gradient) {
  MOX_ASSERT(gradient.size() == s_.size(), "a gradient of as many coordinates as there are dimensions");
  b_before_ = b_;
  last_gradient_before_ = last_gradient_;
  if (!last_gradient_.empty()) update(gradient);
  const Eigen::Index k = s_.size();
  Eigen::Map<Eigen::VectorXd> direction(direction_.data(), k);
  direction = -(Eigen::Map<const SquareMatrix>(b_.data(), k, k) * as_vector(gradient));
  slope_ = direction.dot(as_vector(gradient));
  last_gradient_.assign(gradient.begin(), gradient.end());
  return direction_;
}

void SubspaceSearch::accept(double length) {
  for (size_t i = 0; i < s_.size(); ++i) s_[i] = length * direction_[i];
}

void SubspaceSearch::withdraw() {
  b_ = b_before_;
  last_gradient_ = last_gradient_before_;
}

void SubspaceSearch::restore(const State& state) {
  const size_t k = s_.size();
  if (state.b.size() != k * k || state.last_step.size() != k ||
      (!state.last_gradient.empty() && state.last_gradient.size() != k))
    throw DataError(
        fmt::format("a search in {} dimensions cannot go on from a state of {}", k, state.last_step.size()));
  b_ = state.b;
  last_gradient_ = state.last_gradient;
  s_ = state.last_step;
}

}  // namespace mox::boost
