// reduce_sum, reduce_mean, reduce_max, reduce_min, sum_to, broadcast_to.
#include "ops/reduction/reduction.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/gradients.h"
#include "ops/shape/shape.h"
#include "runtime/base/error.h"
#include "tests/support/gradient_check.h"

namespace mox {
namespace {

using test::check_gradients;
using test::evaluate_op;
using test::expect_close;
using test::random_array;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Reduce = std::function<Tensor(const Tensor&, const ReduceOptions&)>;

struct ReductionCase {
  std::string name;
  Reduce op;
  double start;
  std::function<double(double, double)> step;
  bool mean = false;
};

void PrintTo(const ReductionCase& value, std::ostream* os) { *os << value.name; }

class ReductionTest : public ::testing::TestWithParam<ReductionCase> {
 protected:
  // The plain loop: every element goes to the result with the same kept indices.
  static Array reference(const Array& x, const std::vector<int64_t>& axes, bool keep_dims) {
    std::vector<bool> reduced(static_cast<size_t>(x.shape().rank()), axes.empty());
    for (int64_t axis : axes) reduced[x.shape().normalized_axis(axis)] = true;
    std::vector<int64_t> kept, dims;
    int64_t count = 1;
    for (int a = 0; a < x.shape().rank(); ++a) {
      const bool is_reduced = reduced[a];
      if (is_reduced) count *= x.shape()[a];
      kept.push_back(is_reduced ? 1 : x.shape()[a]);
      if (!is_reduced || keep_dims) dims.push_back(kept.back());
    }
    const std::vector<int64_t> strides = Shape(kept).strides();
    std::vector<double> results(static_cast<size_t>(Shape(kept).elements()), GetParam().start);
    for (int64_t i = 0; i < x.elements(); ++i) {
      int64_t rest = i, to = 0;
      for (int a = x.shape().rank() - 1; a >= 0; --a) {
        if (!reduced[a]) to += rest % x.shape()[a] * strides[a];
        rest /= x.shape()[a];
      }
      double& result = results[to];
      result = GetParam().step(result, static_cast<double>(x.values<float>()[i]));
    }
    Array array(DType::kFloat32, Shape(dims));
    for (size_t i = 0; i < results.size(); ++i)
      array.values<float>()[i] =
          static_cast<float>(GetParam().mean ? results[i] / static_cast<double>(count) : results[i]);
    return array;
  }

  static test::Build build(const ReduceOptions& options) {
    return [options](std::span<const Tensor> in) { return GetParam().op(in[0], options); };
  }
};

struct Axes {
  Shape shape;
  std::vector<int64_t> axes;
};

TEST_P(ReductionTest, AgreesWithAPlainLoop) {
  const std::vector<Axes> cases = {
      {{}, {}},
      {{1}, {0}},
      {{5}, {}},
      {{7, 3}, {0}},
      {{7, 3}, {1}},
      {{7, 3}, {-1}},
      {{7, 3}, {}},
      {{4, 5, 6}, {1}},
      {{4, 5, 6}, {0, 2}},
      {{4, 5, 6}, {2, 0}},
      {{4, 1, 6}, {1}},
      {{3, 4, 5, 6}, {1, 3}},
      {{3, 4, 5, 6}, {0, 2}},
      {{2, 3, 4, 5, 6}, {0, 2, 4}},
      {{100000}, {}},         // one result, cut into chunks
      {{3, 40000}, {1}},      // few long rows
      {{40000, 3}, {0}},      // narrow columns, several rows at a time
      {{40001, 70}, {0}},     // columns, one row at a time
      {{300, 3000}, {0}},     // several blocks of columns
      {{5, 1000, 300}, {1}},  // columns in the middle
      {{16, 8, 49}, {0, 2}},  // as the gradient of a bias of an image
      {{16, 49, 8}, {0, 1}},
      {{0, 3}, {1}},  // no results
  };
  for (const auto& [shape, axes] : cases) {
    for (const bool keep_dims : {false, true}) {
      SCOPED_TRACE(to_string(shape) + (keep_dims ? " keeping axes" : ""));
      const Array x = random_array(shape, 1, -1.0f, 2.0f);
      expect_close(evaluate_op(build({.axes = axes, .keep_dims = keep_dims}), {x}),
                   reference(x, axes, keep_dims), 2e-6, 1e-5);
    }
  }
}

TEST_P(ReductionTest, GradientAgreesWithFiniteDifferences) {
  for (const auto& [shape, axes] : std::vector<Axes>{
           {{}, {}}, {{6}, {}}, {{3, 4}, {0}}, {{3, 4}, {1}}, {{2, 3, 4}, {0, 2}}, {{2, 1, 3}, {1}}}) {
    for (const bool keep_dims : {false, true}) {
      SCOPED_TRACE(to_string(shape) + (keep_dims ? " keeping axes" : ""));
      // Distinct values, farther apart than the step, so that the extremes are differentiable.
      Array x(DType::kFloat32, shape);
      for (int64_t i = 0; i < x.elements(); ++i)
        x.values<float>()[i] = 0.1f * static_cast<float>(i * 7 % 25) - 1;
      check_gradients(build({.axes = axes, .keep_dims = keep_dims}), {x});
    }
  }
}

TEST_P(ReductionTest, PassesNaN) {
  Array x = random_array({40, 40}, 2);
  x.values<float>()[700] = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t axis : {0, 1}) {
    const Array y = evaluate_op(build({.axes = {axis}}), {x});
    for (int64_t i = 0; i < 40; ++i)
      EXPECT_EQ(std::isnan(y.values<float>()[i]), i == (axis == 0 ? 700 % 40 : 700 / 40));
  }
}

TEST_P(ReductionTest, RefusesAxesThatAreNotThere) {
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {2, 3}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(x, {.axes = {2}}); }),
              AllOf(HasSubstr(GetParam().name), HasSubstr("[-2, 2)"), HasSubstr("given 2"),
                    HasSubstr("[2, 3]"), HasSubstr("reduction_test.cc:")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(x, {.axes = {-3}}); }), HasSubstr("given -3"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(x, {.axes = {1, -1}}); }), HasSubstr("twice"));
  const Tensor flags = graph.input(1, {DType::kBool, {2, 3}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { GetParam().op(flags, {}); }), HasSubstr("float32"));
  EXPECT_THROW(GetParam().op(Tensor(), {}), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(
    All, ReductionTest,
    ::testing::Values(
        ReductionCase{"reduce_sum", [](const Tensor& x, const ReduceOptions& o) { return reduce_sum(x, o); },
                      0, std::plus<>()},
        ReductionCase{"reduce_mean",
                      [](const Tensor& x, const ReduceOptions& o) { return reduce_mean(x, o); }, 0,
                      std::plus<>(), true},
        ReductionCase{"reduce_max", [](const Tensor& x, const ReduceOptions& o) { return reduce_max(x, o); },
                      -1e30, [](double a, double b) { return std::max(a, b); }},
        ReductionCase{"reduce_min", [](const Tensor& x, const ReduceOptions& o) { return reduce_min(x, o); },
                      1e30, [](double a, double b) { return std::min(a, b); }}),
    [](const auto& info) { return info.param.name; });

TEST(Reduction, OfAnUndefinedTensorNamesTheLine) {
  EXPECT_THAT(message_of<InvalidArgument>([] { reduce_max(Tensor()); }),
              AllOf(HasSubstr("reduce_max at "), HasSubstr("reduction_test.cc:"), HasSubstr("undefined")));
}

TEST(Reduction, OfNothing) {
  const Array nothing(DType::kFloat32, {0, 2});
  auto values = [&](const test::Build& build) {
    const Array y = evaluate_op(build, {nothing});
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  EXPECT_THAT(values([](std::span<const Tensor> in) { return reduce_sum(in[0], {.axes = {0}}); }),
              ElementsAre(0, 0));
  const auto means = values([](std::span<const Tensor> in) { return reduce_mean(in[0], {.axes = {0}}); });
  EXPECT_TRUE(std::isnan(means[0]) && std::isnan(means[1]));
  check_gradients([](std::span<const Tensor> in) { return reduce_sum(in[0], {.axes = {0}}); }, {nothing});
  Graph graph;
  const Tensor x = graph.input(0, nothing.type(), SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { reduce_max(x, {.axes = {0}}); }),
              AllOf(HasSubstr("reduce_max"), HasSubstr("at least one element"), HasSubstr("[0, 2]")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { reduce_min(x); }), HasSubstr("at least one element"));
  EXPECT_EQ(reduce_max(x, {.axes = {1}}).shape(), Shape{0});
}

TEST(Reduction, OfIntegers) {
  const Array x = Array::from<int32_t>({2, 3}, {1, -2, 3, 40, 50, -60});
  auto values = [&](const test::Build& build) {
    const Array y = evaluate_op(build, {x});
    return std::vector<int32_t>(y.values<int32_t>().begin(), y.values<int32_t>().end());
  };
  EXPECT_THAT(values([](std::span<const Tensor> in) { return reduce_sum(in[0], {.axes = {1}}); }),
              ElementsAre(2, 30));
  EXPECT_THAT(values([](std::span<const Tensor> in) { return reduce_max(in[0], {.axes = {0}}); }),
              ElementsAre(40, 50, 3));
  EXPECT_THAT(values([](std::span<const Tensor> in) { return reduce_min(in[0]); }), ElementsAre(-60));
  const int64_t large = int64_t{1} << 60;
  const Array sum = evaluate_op([](std::span<const Tensor> in) { return reduce_sum(in[0]); },
                                {Array::from<int64_t>({3}, {large, 1, large})});
  EXPECT_EQ(sum.values<int64_t>()[0], 2 * large + 1);
  Graph graph;
  const Tensor counts = graph.input(0, x.type(), SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { reduce_mean(counts); }),
              AllOf(HasSubstr("reduce_mean"), HasSubstr("float32"), HasSubstr("int32")));
}

// Ten million times 0.1: a running float32 sum ends 8 % off.
TEST(Reduction, SumsOfManyElementsStayExact) {
  Array x(DType::kFloat32, {10'000'000});
  for (float& value : x.values<float>()) value = 0.1f;
  const double exact = 1e7 * static_cast<double>(0.1f);
  for (const Shape& shape : {Shape{10'000'000}, Shape{5'000'000, 2}, Shape{2, 5'000'000}}) {
    SCOPED_TRACE(to_string(shape));
    const Array sum =
        evaluate_op([](std::span<const Tensor> in) { return reduce_sum(in[0]); }, {x.reshaped(shape)});
    EXPECT_NEAR(sum.item() / exact, 1, 1e-6);
  }
  const Array columns =
      evaluate_op([](std::span<const Tensor> in) { return reduce_sum(in[0], {.axes = {0}}); },
                  {x.reshaped({1'000'000, 10})});
  for (const float sum : columns.values<float>()) EXPECT_NEAR(sum / (exact / 10), 1, 1e-6);
}

TEST(Reduction, GradientOfAnExtremeIsSharedByTies) {
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {2, 3}}, SourceLocation::current());
  const Tensor loss = reduce_sum(reduce_max(x, {.axes = {1}}));
  const Tensor gradient = gradients(loss, std::span(&x, 1))[0];
  const Array values = test::run_graph(gradient, std::vector{Array::from<float>({2, 3}, {5, 1, 5, 0, 2, 1})});
  EXPECT_THAT(values.values<float>(), ElementsAre(0.5f, 0, 0.5f, 0, 1, 0));
}

TEST(SumTo, IsTheReverseOfBroadcastTo) {
  for (const auto& [small, large] : std::vector<std::pair<Shape, Shape>>{{{}, {2, 3}},
                                                                         {{3}, {2, 3}},
                                                                         {{2, 1}, {2, 3}},
                                                                         {{1, 3, 1}, {4, 2, 3, 5}},
                                                                         {{1}, {0}},
                                                                         {{1, 2}, {0, 2}},
                                                                         {{2}, {2}}}) {
    SCOPED_TRACE(to_string(small) + " and " + to_string(large));
    const Array x = random_array(small, 3), y = random_array(large, 4);
    const test::Build up = [&large = large](std::span<const Tensor> in) {
      return broadcast_to(in[0], large);
    };
    const test::Build down = [&small = small](std::span<const Tensor> in) { return sum_to(in[0], small); };
    EXPECT_EQ(evaluate_op(up, {x}).shape(), large);
    EXPECT_EQ(evaluate_op(down, {y}).shape(), small);
    check_gradients(up, {x});
    check_gradients(down, {y});
    // The two are adjoint: <up(x), y> = <x, down(y)>.
    const Array upper = evaluate_op(up, {x}), lower = evaluate_op(down, {y});
    double left = 0, right = 0;
    for (size_t i = 0; i < static_cast<size_t>(large.elements()); ++i)
      left += upper.values<float>()[i] * y.values<float>()[i];
    for (size_t i = 0; i < static_cast<size_t>(small.elements()); ++i)
      right += lower.values<float>()[i] * x.values<float>()[i];
    EXPECT_NEAR(left, right, 1e-4);
  }
}

TEST(SumTo, RefusesOtherShapes) {
  Graph graph;
  const Tensor x = graph.input(0, {DType::kFloat32, {2, 3}}, SourceLocation::current());
  EXPECT_THAT(message_of<InvalidArgument>([&] { sum_to(x, {2}); }),
              AllOf(HasSubstr("sum_to"), HasSubstr("[2, 3]")));
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                broadcast_to(x, {2, 4});
              }),
              AllOf(HasSubstr("broadcast_to"), HasSubstr("[2, 3]"), HasSubstr("[2, 4]")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { broadcast_to(x, {3}); }), HasSubstr("broadcasts to"));
}

TEST(BroadcastTo, TakesEveryDtype) {
  EXPECT_THAT(evaluate_op(
                  [](std::span<const Tensor> in) {
                    return broadcast_to(in[0], {2, 2});
                  },
                  {Array::from<bool>({2}, {true, false})})
                  .values<bool>(),
              ElementsAre(true, false, true, false));
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_THAT(evaluate_op(
                  [](std::span<const Tensor> in) {
                    return broadcast_to(in[0], {2, 2});
                  },
                  {Array::from<int64_t>({2, 1}, {large, 2})})
                  .values<int64_t>(),
              ElementsAre(large, large, 2, 2));
}

// Addends that a partial sum in float32 loses one by one.
TEST(ReduceSum, IsWithinItsBound) {
  for (const int64_t size : {int64_t{128}, int64_t{129}, int64_t{100'000}}) {
    SCOPED_TRACE(size);
    Array x(DType::kFloat32, {size});
    double exact = 0;
    for (int64_t i = 0; i < size; ++i) {
      const float value = i % 128 == 0 ? 1.0f : 0x1p-25f;
      x.values<float>()[static_cast<size_t>(i)] = value;
      exact += static_cast<double>(value);
    }
    const Array sum = evaluate_op([](std::span<const Tensor> in) { return reduce_sum(in[0]); }, {x});
    EXPECT_NEAR(sum.item(), exact, exact * 0x1p-17);
  }
}

}  // namespace
}  // namespace mox
