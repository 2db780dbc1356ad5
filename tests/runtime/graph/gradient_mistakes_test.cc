// What a program can get wrong about gradients is said, with the place, and does not end the process.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

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

TEST_F(GradientMistakesTest, ATargetThatIsUndefinedOrOfAnotherGraph) {
  EXPECT_THAT(refusal(reduce_sum(x_), Tensor()), HasSubstr("an undefined tensor"));
  Graph other;
  const Tensor stranger = other.input(0, {DType::kFloat32, {3}}, SourceLocation::current());
  EXPECT_THAT(refusal(reduce_sum(x_), stranger), HasSubstr("a tensor of another graph"));
}

}  // namespace
}  // namespace mox
