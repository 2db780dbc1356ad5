#include "moxing/model/model_spec.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "moxing/model/mode_keys.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class InputsTest : public ::testing::Test {
 protected:
  Graph graph_;
  Tensor x_ = graph_.input(0, {DType::kFloat32, {8, 2}}, SourceLocation::current());
  Tensor y_ = graph_.input(1, {DType::kInt64, {8}}, SourceLocation::current());
  Inputs inputs_{{x_, y_}};
};

TEST_F(InputsTest, AreTakenTogetherOrOneByOne) {
  auto [x, y] = inputs_.take<2>();
  EXPECT_EQ(x, x_);
  EXPECT_EQ(y, y_);
  EXPECT_EQ(inputs_[1], y_);
  EXPECT_EQ(inputs_.size(), 2u);
}

TEST_F(InputsTest, AnotherNumberIsRefusedWithThePlaceAndTheTypes) {
  const auto place = [](int line) { return "model_spec_test.cc:" + std::to_string(line); };
  const int take = __LINE__ + 1;
  const std::string taking = message_of<InvalidArgument>([&] { inputs_.take<3>(); });
  EXPECT_THAT(taking, AllOf(HasSubstr("take<3>() at"), HasSubstr(place(take)),
                            HasSubstr("2 component(s): float32[8, 2], int64[8]")));
  const int at = __LINE__ + 1;
  const std::string asking = message_of<InvalidArgument>([&] { inputs_.at(2); });
  EXPECT_THAT(asking, AllOf(HasSubstr("component 2"), HasSubstr(place(at))));
  // operator[] knows nobody's line, and names none.
  const std::string indexed = message_of<InvalidArgument>([&] { inputs_[2]; });
  EXPECT_THAT(indexed, AllOf(HasSubstr("component 2"), HasSubstr("it has 2, float32[8, 2], int64[8]"),
                             HasSubstr("PREDICT"), Not(HasSubstr("model_spec"))));
}

}  // namespace
}  // namespace mox
