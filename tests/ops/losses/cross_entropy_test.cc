// softmax_cross_entropy, sparse_softmax_cross_entropy, their gradient ops and smooth_labels.
#include <gmock/gmock-more-matchers.h>

#include <cmath>
#include <limits>

#include "ops/indexing/indexing.h"
#include "ops/losses/losses.h"
#include "tests/ops/run_op.h"
#include "tests/support/gradient_check.h"

namespace mox::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Tensors = std::span<const Tensor>;

// -sum(t * log(softmax(x))) in double, t being the labels smoothed.
std::vector<double> reference(const Array& logits, const Array& labels, double smoothing) {
  const int64_t batch = logits.shape()[0], classes = logits.shape()[1];
  std::vector<double> loss;
  for (int64_t row = 0; row < batch; ++row) {
    const float* x = logits.values<float>().data() + row * classes;
    const float* t = labels.values<float>().data() + row * classes;
    double maximum = x[0], sum = 0, result = 0;
    for (int64_t i = 0; i < classes; ++i) maximum = std::max<double>(maximum, x[i]);
    for (int64_t i = 0; i < classes; ++i) sum += std::exp(x[i] - maximum);
    for (int64_t i = 0; i < classes; ++i)
      result -= (t[i] * (1 - smoothing) + smoothing / static_cast<double>(classes)) *
                (x[i] - maximum - std::log(sum));
    loss.push_back(result);
  }
  return loss;
}

template <typename T>
Array some_labels(int64_t batch, int64_t classes) {
  Array labels(dtype_of<T>, {batch});
  for (int64_t i = 0; i < batch; ++i) labels.values<T>()[i] = static_cast<T>(i * 7 % classes);
  return labels;
}

void expect_near(const Array& actual, const std::vector<double>& expected) {
  ASSERT_EQ(static_cast<size_t>(actual.elements()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.values<float>()[i], expected[i], 2e-6 + 4e-6 * std::fabs(expected[i])) << i;
}

struct BatchAndClasses {
  int64_t batch, classes;
};
constexpr BatchAndClasses kBatchesAndClasses[] = {{100, 10}, {1, 1},   {0, 5},    {3, 1000},
                                                  {2, 5000}, {600, 3}, {5, 4097}, {1000, 31}};

TEST(SparseSoftmaxCrossEntropy, AgreesWithTheDefinition) {
  for (const BatchAndClasses& shape : kBatchesAndClasses)
    for (double smoothing : {0.0, 0.1}) {
      const int64_t batch = shape.batch, classes = shape.classes;
      const Array logits = random_array({batch, classes}, 5, -4, 4);
      const Array labels = some_labels<int32_t>(batch, classes), wide = some_labels<int64_t>(batch, classes);
      const Array dense = run_op([&](Tensors in) { return one_hot(in[0], classes); }, {labels});
      const auto loss = [&](Tensors in) {
        return sparse_softmax_cross_entropy(in[0], in[1], {.label_smoothing = smoothing});
      };
      expect_near(run_op(loss, {logits, labels}), reference(logits, dense, smoothing));
      EXPECT_EQ(values_of<float>(run_op(loss, {logits, wide})),
                values_of<float>(run_op(loss, {logits, labels})));
    }
}

TEST(SoftmaxCrossEntropy, AgreesWithTheDefinition) {
  for (const auto [batch, classes] : kBatchesAndClasses)
    for (double smoothing : {0.0, 0.2}) {
      const Array logits = random_array({batch, classes}, 5, -4, 4);
      const Array labels = random_array({batch, classes}, 6, 0, 2 / static_cast<float>(classes));
      expect_near(
          run_op(
              [&](Tensors in) { return softmax_cross_entropy(in[0], in[1], {.label_smoothing = smoothing}); },
              {logits, labels}),
          reference(logits, labels, smoothing));
    }
}

TEST(CrossEntropy, KeepsItsDigitsForLargeLogits) {
  const Array logits = Array::from<float>({2, 3}, {30000, 29999, -30000, 100, 100, 100});
  const Array labels = Array::from<int32_t>({2}, {0, 2});
  const Array loss =
      run_op([](Tensors in) { return sparse_softmax_cross_entropy(in[0], in[1]); }, {logits, labels});
  EXPECT_NEAR(loss.values<float>()[0], std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(loss.values<float>()[1], std::log(3.0), 1e-6);
}

TEST(CrossEntropy, LetsMasksAndNaNThrough) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Array logits = Array::from<float>({3, 2}, {-infinity, 0, -infinity, 0, std::nanf(""), 0});
  const Array sparse = run_op([](Tensors in) { return sparse_softmax_cross_entropy(in[0], in[1]); },
                              {logits, Array::from<int32_t>({3}, {1, 0, 1})});
  EXPECT_EQ(sparse.values<float>()[0], 0);
  EXPECT_EQ(sparse.values<float>()[1], infinity);
  EXPECT_TRUE(std::isnan(sparse.values<float>()[2]));
  const Array dense = run_op([](Tensors in) { return softmax_cross_entropy(in[0], in[1]); },
                             {logits, Array::from<float>({3, 2}, {0, 1, 1, 0, 0, 1})});
  EXPECT_EQ(dense.values<float>()[0], 0);
  EXPECT_EQ(dense.values<float>()[1], infinity);
  EXPECT_TRUE(std::isnan(dense.values<float>()[2]));
}

TEST(SparseSoftmaxCrossEntropy, NamesALabelOutOfRange) {
  const auto error = [](Array labels) {
    return message_of<InvalidArgument>([&] {
      run_op([](Tensors in) { return sparse_softmax_cross_entropy(in[0], in[1]); },
             {counting({3, 4}), labels});
    });
  };
  EXPECT_THAT(error(Array::from<int32_t>({3}, {0, 3, 4})),
              AllOf(HasSubstr("sparse_softmax_cross_entropy"), HasSubstr("cross_entropy_test.cc"),
                    HasSubstr("every label in [0, 4), as there are 4 classes"),
                    HasSubstr("the label at position [2] is 4")));
  EXPECT_THAT(error(Array::from<int64_t>({3}, {0, -1, 4})), HasSubstr("the label at position [1] is -1"));
}

TEST(SparseSoftmaxCrossEntropy, HasTheGradientOfItsDefinition) {
  for (const auto [batch, classes] : {BatchAndClasses{4, 5}, BatchAndClasses{1, 1}, BatchAndClasses{0, 3},
                                      BatchAndClasses{3, 1}, BatchAndClasses{2, 40}})
    for (double smoothing : {0.0, 0.1})
      check_gradients(
          [&](Tensors in) {
            return sparse_softmax_cross_entropy(in[0], in[1], {.label_smoothing = smoothing});
          },
          {random_array({batch, classes}, 3, -2, 2), some_labels<int32_t>(batch, classes)});
}

TEST(SoftmaxCrossEntropy, HasTheGradientOfItsDefinitionForLogitsAndLabels) {
  for (const auto [batch, classes] : {BatchAndClasses{4, 5}, BatchAndClasses{1, 1}, BatchAndClasses{0, 3},
                                      BatchAndClasses{3, 1}, BatchAndClasses{2, 40}})
    for (double smoothing : {0.0, 0.1})
      check_gradients(
          [&](Tensors in) { return softmax_cross_entropy(in[0], in[1], {.label_smoothing = smoothing}); },
          {random_array({batch, classes}, 3, -2, 2), random_array({batch, classes}, 4, 0, 1)});
}

// The statistics come from the loss itself, so that they follow the logits as they are moved.
TEST(CrossEntropy, HasSecondDerivatives) {
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const Array logits = random_array({4, 5}, 3, -2, 2), dy = random_array({4}, 5);
  check_gradients(
      [&](Tensors in) {
        Node& loss = *sparse_softmax_cross_entropy(in[0], in[1], options).node();
        return sparse_softmax_cross_entropy_gradient(in[0], in[1], loss.output(1), in[2], options);
      },
      {logits, some_labels<int64_t>(4, 5), dy});
  check_gradients(
      [&](Tensors in) {
        Node& loss = *softmax_cross_entropy(in[0], in[1], options).node();
        return softmax_cross_entropy_gradient(in[0], in[1], loss.output(1), in[2], options);
      },
      {logits, random_array({4, 5}, 4, 0, 1), dy});
}

TEST(CrossEntropy, RefusesWrongTypes) {
  const auto sparse = [](const TensorType& logits, const TensorType& labels, double smoothing = 0) {
    return build_error(
        [&](Tensors in) {
          return std::vector{sparse_softmax_cross_entropy(in[0], in[1], {.label_smoothing = smoothing})};
        },
        {logits, labels});
  };
  EXPECT_THAT(sparse({DType::kFloat32, {3, 2}}, {DType::kInt32, {4}}), HasSubstr("logits [batch, classes]"));
  EXPECT_THAT(sparse({DType::kFloat32, {3}}, {DType::kInt32, {3}}), HasSubstr("logits [batch, classes]"));
  EXPECT_THAT(sparse({DType::kFloat32, {3, 0}}, {DType::kInt32, {3}}), HasSubstr("at least one class"));
  EXPECT_THAT(sparse({DType::kFloat32, {3, 2}}, {DType::kFloat32, {3}}), HasSubstr("int32 or int64"));
  EXPECT_THAT(sparse({DType::kInt32, {3, 2}}, {DType::kInt32, {3}}), HasSubstr("float32"));
  EXPECT_THAT(sparse({DType::kFloat32, {3, 2}}, {DType::kInt32, {3}}, 1),
              HasSubstr("label_smoothing in [0, 1)"));
  EXPECT_THAT(sparse({DType::kFloat32, {3, 2}}, {DType::kInt32, {3}}, std::nan("")),
              HasSubstr("label_smoothing in [0, 1)"));
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{softmax_cross_entropy(in[0], in[1])}; },
                          {{DType::kFloat32, {3, 2}}, {DType::kFloat32, {3}}}),
              HasSubstr("logits and labels of one shape"));
}

TEST(SmoothLabels, MovesMassToAllClasses) {
  const Array labels = Array::from<float>({2, 4}, {1, 0, 0, 0, 0, 0.5f, 0.5f, 0});
  const Array y = run_op([](Tensors in) { return smooth_labels(in[0], 0.2); }, {labels});
  const std::vector<double> expected{0.85, 0.05, 0.05, 0.05, 0.05, 0.45, 0.45, 0.05};
  expect_near(y, expected);
  check_gradients([](Tensors in) { return smooth_labels(in[0], 0.2); }, {labels});
  EXPECT_THAT(build_error([](Tensors in) { return std::vector{smooth_labels(in[0], 1.0)}; }, {labels.type()}),
              HasSubstr("smoothing in [0, 1)"));
}

}  // namespace
}  // namespace mox::test
