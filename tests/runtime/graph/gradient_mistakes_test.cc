// What a program can get wrong about gradients is said, with the place, and does not end the process.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <array>

#include "ops/ops.h"
#include "runtime/base/error.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Op kTooFew{.name = "test_too_few", .infer = same_as_input, .gradient = [](const GradientCall&) {
                   return std::vector<Tensor>{};
                 }};
const Op kWrongShape{
    .name = "test_wrong_shape", .infer = same_as_input, .gradient = [](const GradientCall& call) {
      return std::vector<Tensor>{reduce_sum(call.gradient())};
    }};

const Op kNone{.name = "test_none", .infer = same_as_input};

class GradientMistakesTest : public ::testing::Test {
 protected:
  std::string refusal(const Tensor& loss, const Tensor& target) {
    return message_of<InvalidArgument>([&] { gradients(loss, std::span(&target, 1)); });
  }
  Tensor of(const Op& op) { return make_tensor(op, {x_}, {}, SourceLocation::current()); }

  Graph graph_;
  GraphScope scope_{graph_};
  Tensor x_ = graph_.input(0, {DType::kFloat32, {3}}, SourceLocation::current());
};

TEST_F(GradientMistakesTest, AGradientFunctionThatReturnsTooFew) {
  EXPECT_THAT(refusal(reduce_sum(of(kTooFew)), x_),
              AllOf(HasSubstr("'test_too_few' returned 0 tensors"), HasSubstr("gradient_mistakes_test.cc")));
}

TEST_F(GradientMistakesTest, AGradientFunctionThatReturnsAnotherShape) {
  EXPECT_THAT(refusal(reduce_sum(of(kWrongShape)), x_),
              AllOf(HasSubstr("'test_wrong_shape'"), HasSubstr("a gradient has the type of its input")));
}

// Nothing may be left out of a sum in silence.
TEST_F(GradientMistakesTest, AnOpWithoutAGradientOnThePath) {
  EXPECT_THAT(refusal(reduce_sum(square(x_) + of(kNone)), x_),
              AllOf(HasSubstr("'test_none' has none"), HasSubstr("gradient_mistakes_test.cc"),
                    HasSubstr("stop_gradient")));
  const Tensor loss = reduce_sum(square(x_) + stop_gradient(of(kNone)));
  EXPECT_TRUE(gradients(loss, std::span(&x_, 1))[0].defined());
  const Tensor beside = graph_.input(1, {DType::kFloat32, {3}}, SourceLocation::current());
  EXPECT_TRUE(gradients(reduce_sum(beside * of(kNone)), std::span(&beside, 1))[0].defined());
  EXPECT_TRUE(gradients(reduce_sum(of(kNone)), std::array{of(kNone)}).size() == 1);
}

TEST_F(GradientMistakesTest, ATargetThatIsUndefinedOrOfAnotherGraph) {
  EXPECT_THAT(refusal(reduce_sum(x_), Tensor()), HasSubstr("an undefined tensor"));
  Graph other;
  const Tensor stranger = other.input(0, {DType::kFloat32, {3}}, SourceLocation::current());
  EXPECT_THAT(refusal(reduce_sum(x_), stranger), HasSubstr("a tensor of another graph"));
}

}  // namespace
}  // namespace mox
