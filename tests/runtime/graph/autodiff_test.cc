// The autodiff driver, through ops/gradients.h.
#include "runtime/graph/autodiff.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "runtime/base/error.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using test::run_graph;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AutodiffTest : public ::testing::Test {
 protected:
  Tensor input(int component, const Shape& shape, DType dtype = DType::kFloat32) {
    return graph_.input(component, {dtype, shape}, SourceLocation::current());
  }
  static Tensor derivative(const Tensor& loss, const Tensor& x) {
    return gradients(loss, std::span(&x, 1))[0];
  }

  Graph graph_;
  GraphScope scope_{graph_};
};

TEST_F(AutodiffTest, SumsWhatComesFromSeveralUses) {
  const Tensor x = input(0, {2});
  const Tensor shared = square(x);
  const Tensor loss = reduce_sum(shared * 3 + shared * shared + x);  // 3 x^2 + x^4 + x
  const Array gradient = run_graph(derivative(loss, x), std::vector{Array::from<float>({2}, {1, 2})});
  EXPECT_THAT(gradient.values<float>(), ElementsAre(6 + 4 + 1, 12 + 32 + 1));
}

TEST_F(AutodiffTest, AUseTwiceInOneNodeCountsTwice) {
  const Tensor x = input(0, {});
  EXPECT_EQ(run_graph(derivative(x * x, x), std::vector{Array::scalar(3.0f)}).item(), 6);
  EXPECT_EQ(run_graph(derivative(x - x, x), std::vector{Array::scalar(3.0f)}).item(), 0);
}

TEST_F(AutodiffTest, AnUnreachedTargetHasNoGradient) {
  const Tensor x = input(0, {3}), other = input(1, {3}), later = input(2, {});
  const Tensor loss = reduce_sum(x);
  const Tensor after = square(other);
  const std::vector<Tensor> targets = {other, x, after, later};
  const std::vector<Tensor> result = gradients(loss, targets);
  EXPECT_FALSE(result[0].defined());
  EXPECT_TRUE(result[1].defined());
  EXPECT_FALSE(result[2].defined());
  EXPECT_FALSE(result[3].defined());
}

TEST_F(AutodiffTest, NoGradientPassesWallsAndIntegers) {
  const Tensor x = input(0, {3});
  EXPECT_FALSE(derivative(reduce_sum(stop_gradient(x)), x).defined());
  EXPECT_FALSE(derivative(reduce_sum(cast(cast(x, DType::kInt32), DType::kFloat32)), x).defined());
}

TEST_F(AutodiffTest, BuildsNothingOutsideOfThePath) {
  const Tensor x = input(0, {3}), w = input(1, {3});
  const Tensor loss = reduce_sum(exp(tanh(w)) * x);  // nothing before the product is needed for x
  const size_t before = graph_.nodes().size();
  derivative(loss, x);
  for (size_t i = before; i < graph_.nodes().size(); ++i)
    EXPECT_NE(graph_.nodes()[i]->op->name, "square") << "the gradient of tanh was built";
}

TEST_F(AutodiffTest, TheLossAsItsOwnTarget) {
  const Tensor x = input(0, {});
  EXPECT_EQ(run_graph(derivative(x, x), std::vector{Array::scalar(5.0f)}).item(), 1);
}

TEST_F(AutodiffTest, AnIntermediateTarget) {
  const Tensor x = input(0, {2});
  const Tensor hidden = square(x);
  const Array gradient = run_graph(derivative(reduce_sum(hidden * hidden), hidden),
                                   std::vector{Array::from<float>({2}, {1, 2})});
  EXPECT_THAT(gradient.values<float>(), ElementsAre(2, 8));
}

TEST_F(AutodiffTest, DifferentiatesItsOwnGradients) {
  const Tensor x = input(0, {3});
  const std::vector<Array> values = {Array::from<float>({3}, {-1, 0.5f, 2})};
  const Tensor first = derivative(reduce_sum(pow(x, 3)), x);
  const Tensor second = derivative(reduce_sum(first), x);
  const Tensor third = derivative(reduce_sum(second), x);
  test::expect_close(run_graph(first, values), Array::from<float>({3}, {3, 0.75f, 12}));
  test::expect_close(run_graph(second, values), Array::from<float>({3}, {-6, 3, 12}));
  test::expect_close(run_graph(third, values), Array::from<float>({3}, {6, 6, 6}));
}

TEST_F(AutodiffTest, ALossIsOneFloatingNumber) {
  const Tensor x = input(0, {2, 3}), count = input(1, {}, DType::kInt32);
  EXPECT_THAT(message_of<InvalidArgument>([&] { derivative(square(x).named("errors"), x); }),
              AllOf(HasSubstr("errors"), HasSubstr("[2, 3]"), HasSubstr("reduce_mean"),
                    HasSubstr("autodiff_test.cc:")));
  EXPECT_THAT(message_of<InvalidArgument>([&] { derivative(count, x); }), HasSubstr("int32"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { derivative(Tensor(), x); }), HasSubstr("undefined"));
}

TEST_F(AutodiffTest, GradientNodesCarryTheForwardNodesLine) {
  const Tensor x = input(0, {});
  const uint32_t line = __LINE__ + 1;
  const Tensor y = exp(x);
  const Tensor gradient = derivative(y, x);
  EXPECT_EQ(gradient.where().line(), line);
  EXPECT_THAT(gradient.name(), HasSubstr("gradients/"));
}

}  // namespace
}  // namespace mox
