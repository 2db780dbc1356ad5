// argmax, top_k, in_top_k and accuracy.
#include <gmock/gmock-more-matchers.h>

#include <cmath>
#include <limits>

#include "ops/indexing/indexing.h"
#include "ops/losses/losses.h"
#include "tests/ops/run_op.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

TEST(Argmax, FindsTheFirstLargest) {
  const Array x = Array::from<float>({2, 4}, {1, 5, 5, 2, -3, -7, -3, -4});
  EXPECT_THAT(values_of<int64_t>(run_op([](Tensors in) { return argmax(in[0]); }, {x})), ElementsAre(1, 0));
  EXPECT_THAT(values_of<int64_t>(run_op([](Tensors in) { return argmax(in[0], 0); }, {x})),
              ElementsAre(0, 0, 0, 0));
  const Array y = Array::from<int32_t>({2, 2, 2}, {1, 2, 3, 0, 9, 9, 9, 10});
  EXPECT_THAT(values_of<int64_t>(run_op([](Tensors in) { return argmax(in[0], 1); }, {y})),
              ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(
      values_of<int64_t>(run_op([](Tensors in) { return argmax(in[0]); }, {counting<uint8_t>({300})})),
      ElementsAre(255));
}

TEST(Argmax, TreatsNaNAsLargest) {
  const Array x = Array::from<float>({2, 3}, {kInfinity, kNaN, kNaN, kNaN, 1, kNaN});
  EXPECT_THAT(values_of<int64_t>(run_op([](Tensors in) { return argmax(in[0]); }, {x})), ElementsAre(1, 0));
}

TEST(Argmax, TakesAnEmptyBatchButNoEmptyRow) {
  EXPECT_EQ(run_op([](Tensors in) { return argmax(in[0]); }, {counting({0, 3})}).shape(), Shape{0});
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{argmax(in[0])}; }, {{DType::kFloat32, {3, 0}}}),
              HasSubstr("at least one element on the axis"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{argmax(in[0])}; }, {{DType::kBool, {3}}}),
              HasSubstr("float32, int32, int64 or uint8"));
}

TEST(TopK, SortsTheLargestFirst) {
  const auto top = [](int64_t k) {
    return [k](Tensors in) {
      const TopK result = top_k(in[0], k);
      return std::vector{result.values, result.indices};
    };
  };
  const Array x = Array::from<float>({2, 5}, {3, 1, 3, 2, 0, -1, kNaN, 7, kInfinity, 7});
  const auto two = run_ops(top(2), {x});
  EXPECT_THAT(values_of<float>(two[0]), ElementsAre(3, 3, testing::IsNan(), kInfinity));
  EXPECT_THAT(values_of<int32_t>(two[1]), ElementsAre(0, 2, 1, 3));
  const auto all = run_ops(top(5), {x});
  EXPECT_THAT(values_of<int32_t>(all[1]), ElementsAre(0, 2, 3, 1, 4, 1, 3, 2, 4, 0));
  EXPECT_EQ(run_ops(top(0), {x})[0].shape(), (Shape{2, 0}));
  EXPECT_EQ(run_ops(top(1), {counting<int64_t>({0, 3})})[0].shape(), (Shape{0, 1}));
}

TEST(TopK, AgreesWithSortingOnLongRows) {
  Array x(DType::kInt32, {40, 1000});
  for (size_t i = 0; i < 40000; ++i) x.values<int32_t>()[i] = static_cast<int32_t>(i * 2654435761u % 500);
  const auto top = run_ops(
      [](Tensors in) {
        const TopK result = top_k(in[0], 17);
        return std::vector{result.values, result.indices};
      },
      {x});
  for (size_t row = 0; row < 40; ++row) {
    const int32_t* values = x.values<int32_t>().data() + row * 1000;
    std::vector<int32_t> order(1000);
    for (int32_t i = 0; i < 1000; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return values[a] > values[b]; });
    for (size_t i = 0; i < 17; ++i) {
      ASSERT_EQ(top[1].values<int32_t>()[row * 17 + i], order[i]);
      ASSERT_EQ(top[0].values<int32_t>()[row * 17 + i], values[order[i]]);
    }
  }
}

TEST(TopK, RefusesTooLargeK) {
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{top_k(in[0], 4).values}; },
                          {{DType::kFloat32, {2, 3}}}),
              HasSubstr("k in [0, 3]"));
  EXPECT_THAT(
      build_error([](Tensors in) { return std::vector{top_k(in[0], 1).values}; }, {{DType::kFloat32, {}}}),
      HasSubstr("at least one axis"));
}

TEST(InTopK, LetsTiesStay) {
  const Array predictions = Array::from<float>({5, 4}, {1,          3, 3, 3,  //
                                                        1,          3, 3, 3,  //
                                                        4,          3, 2, 1,  //
                                                        kNaN,       9, 0, 0,  //
                                                        -kInfinity, 9, 0, 0});
  const Array targets = Array::from<int32_t>({5}, {3, 0, 1, 1, 1});
  EXPECT_THAT(
      values_of<bool>(run_op([](Tensors in) { return in_top_k(in[0], in[1], 1); }, {predictions, targets})),
      ElementsAre(true, false, false, false, false));
  EXPECT_THAT(
      values_of<bool>(run_op([](Tensors in) { return in_top_k(in[0], in[1], 3); }, {predictions, targets})),
      ElementsAre(true, false, true, false, false));
  EXPECT_THAT(
      values_of<bool>(run_op([](Tensors in) { return in_top_k(in[0], in[1], 100); }, {predictions, targets})),
      ElementsAre(true, true, true, false, false));
}

TEST(InTopK, RefusesTargetsOutOfRange) {
  EXPECT_THAT(message_of<InvalidArgument>([] {
                run_op([](Tensors in) { return in_top_k(in[0], in[1], 1); },
                       {counting({2, 2}), counting<int64_t>({2})});
                run_op([](Tensors in) { return in_top_k(in[0], in[1], 1); },
                       {counting({3, 2}), counting<int64_t>({3})});
              }),
              HasSubstr("the target at position [2] is 2"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{in_top_k(in[0], in[1], 0)}; },
                          {{DType::kFloat32, {2, 2}}, {DType::kInt32, {2}}}),
              HasSubstr("k >= 1"));
}

TEST(Accuracy, IsTheShareOfCorrectRows) {
  const Array logits = Array::from<float>({4, 3}, {0, 2, 1, 5, 5, 1, 5, 5, 1, 1, 2, 3});
  for (const Array& labels : {Array::from<int32_t>({4}, {1, 0, 1, 0})})
    EXPECT_EQ(run_op([](Tensors in) { return accuracy(in[0], in[1]); }, {logits, labels}).item(), 0.5);
  EXPECT_EQ(run_op([](Tensors in) { return accuracy(in[0], in[1]); },
                   {logits, Array::from<int64_t>({4}, {1, 0, 0, 2})})
                .item(),
            1.0);
}

TEST(Accuracy, CountsRowsThatAreNotFiniteAsWrong) {
  const Array logits = Array::from<float>({4, 2}, {kNaN, 1, kInfinity, 1, -kInfinity, 1, 0, 1});
  EXPECT_EQ(run_op([](Tensors in) { return accuracy(in[0], in[1]); },
                   {logits, Array::from<int64_t>({4}, {0, 0, 1, 1})})
                .item(),
            0.25);
}

TEST(Accuracy, AgreesWithCountingOnATeam) {
  Array logits(DType::kFloat32, {5000, 23});
  Array labels(DType::kInt32, {5000});
  int expected = 0;
  for (size_t i = 0; i < logits.values<float>().size(); ++i)
    logits.values<float>()[i] = static_cast<float>(i * 2654435761u % 1000);
  for (size_t row = 0; row < 5000; ++row) {
    const float* begin = logits.values<float>().data() + row * 23;
    labels.values<int32_t>()[row] = static_cast<int32_t>(row % 23);
    expected += std::max_element(begin, begin + 23) - begin == static_cast<int64_t>(row % 23);
  }
  ASSERT_GT(expected, 0);
  EXPECT_EQ(run_op([](Tensors in) { return accuracy(in[0], in[1]); }, {logits, labels}).item(),
            static_cast<double>(static_cast<float>(expected / 5000.0)));
}

TEST(Accuracy, IsNaNForNothingAndRefusesWrongLabels) {
  EXPECT_TRUE(std::isnan(
      run_op([](Tensors in) { return accuracy(in[0], in[1]); }, {counting({0, 2}), counting<int32_t>({0})})
          .item()));
  EXPECT_THAT(
      message_of<InvalidArgument>([] {
        run_op([](Tensors in) { return accuracy(in[0], in[1]); }, {counting({3, 2}), counting<int32_t>({3})});
      }),
      AllOf(HasSubstr("every label in [0, 2), as there are 2 classes"), HasSubstr("position [2] is 2")));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{accuracy(in[0], in[1])}; },
                          {{DType::kFloat32, {3, 2}}, {DType::kInt32, {2}}}),
              HasSubstr("logits [batch, classes]"));
}

}  // namespace
}  // namespace mox::test
