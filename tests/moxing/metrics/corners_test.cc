// What metrics answer where there is nothing to tell, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"
#include "tests/moxing/metrics/metric_arrays.h"
#include "tests/support/message_of.h"

namespace mox::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using MakeOfTwo = std::function<Metric(const Tensor& scores, const Tensor& labels)>;

Array floats(Shape shape, std::vector<float> values) { return Array::from<float>(std::move(shape), values); }
Array integers(std::vector<int32_t> values) {
  return Array::from<int32_t>({static_cast<int64_t>(values.size())}, values);
}

Result result_over(const Array& scores, const Array& labels, const MakeOfTwo& make) {
  const std::vector<Array> inputs = {scores, labels};
  return evaluate(
      metric_over([&](const std::vector<Tensor>& in, const Tensor&) { return make(in[0], in[1]); }, inputs,
                  {}),
      inputs);
}
double number_over(const Array& scores, const Array& labels, const MakeOfTwo& make) {
  const Result result = result_over(scores, labels, make);
  EXPECT_EQ(result.numbers.size(), 1U);
  return result.numbers.at(0).second;
}
std::string refusal_over(const Array& scores, const Array& labels, const MakeOfTwo& make) {
  return message_of<InvalidArgument>([&] { result_over(scores, labels, make); });
}

const float kNaN = std::nanf("");

TEST(Metrics, AreaOfOneKindOfLabelsIsNotANumber) {
  for (const int64_t bins : {0, 10}) {
    const auto roc = [&](const Tensor& s, const Tensor& y) { return roc_auc(s, y, {.bins = bins}); };
    const auto pr = [&](const Tensor& s, const Tensor& y) { return pr_auc(s, y, {.bins = bins}); };
    const Array scores = floats({3}, {0.1F, 0.5F, 0.9F});
    EXPECT_TRUE(std::isnan(number_over(scores, integers({1, 1, 1}), roc)));
    EXPECT_TRUE(std::isnan(number_over(scores, integers({0, 0, 0}), roc)));
    EXPECT_TRUE(std::isnan(number_over(scores, integers({0, 0, 0}), pr)));
    EXPECT_EQ(number_over(scores, integers({1, 1, 1}), pr), 1);
    EXPECT_TRUE(std::isnan(number_over(floats({3}, {0.1F, kNaN, 0.9F}), integers({0, 1, 1}), roc)));
    EXPECT_TRUE(std::isnan(number_over(floats({3}, {0.1F, kNaN, 0.9F}), integers({0, 1, 1}), pr)));
  }
}

TEST(Metrics, AreaLeavesOutClassesThatAreNotThere) {
  const Array scores = floats({4, 3}, {0.9F, 0.1F, 0, 0.2F, 0.8F, 0, 0.6F, 0.4F, 0, 0.3F, 0.7F, 0});
  const auto macro = [](const Tensor& s, const Tensor& y) { return roc_auc(s, y); };
  EXPECT_EQ(number_over(scores, integers({0, 1, 0, 1}), macro), 1);
  const auto each = [](const Tensor& s, const Tensor& y) {
    return roc_auc(s, y, {.class_names = {"ant", "bee", "cat"}, .average = Average::kPerClass});
  };
  const Result result = result_over(scores, integers({0, 1, 0, 1}), each);
  EXPECT_EQ(result.numbers[0].first, "ant");
  EXPECT_TRUE(std::isnan(result.numbers[2].second));
}

TEST(Metrics, TiesCountHalf) {
  const auto roc = [](const Tensor& s, const Tensor& y) { return roc_auc(s, y); };
  EXPECT_EQ(number_over(floats({4}, {1, 1, 1, 1}), integers({0, 1, 1, 0}), roc), 0.5);
}

TEST(Metrics, ScoresThatAreNotFiniteAreNeverRight) {
  const Array scores = floats({2, 2}, {kNaN, 1, 0, 1}), labels = integers({1, 1});
  EXPECT_EQ(number_over(scores, labels, [](const Tensor& s, const Tensor& y) { return accuracy(s, y); }),
            0.5);
  EXPECT_EQ(
      number_over(scores, labels, [](const Tensor& s, const Tensor& y) { return top_k_accuracy(s, y, 2); }),
      0.5);
  EXPECT_EQ(number_over(
                scores, labels,
                [](const Tensor& s, const Tensor& y) { return recall(s, y, {.average = Average::kMacro}); }),
            0.5);
  const Result confusion =
      result_over(scores, labels, [](const Tensor& s, const Tensor& y) { return confusion_matrix(s, y); });
  ASSERT_EQ(confusion.table.columns.size(), 3U);
  EXPECT_EQ(confusion.table.columns[2], "not finite");
  EXPECT_EQ(confusion.table.rows[1].second, (std::vector<double>{0, 1, 1}));
  for (const auto& make :
       {MakeOfTwo([](const Tensor&s, const Tensor&y) { return log_loss(s, y); }),
        MakeOfTwo([](const Tensor&s, const Tensor&y) { return brier_score(s, y); }),
        MakeOfTwo([](const Tensor&s, const Tensor&y) { return expected_calibration_error(s, y); })})
    EXPECT_TRUE(std::isnan(number_over(scores, labels, make)));
}

TEST(Metrics, UndefinedSharesAreWhatIsAskedFor) {
  const Array scores = floats({2}, {0, 0}), labels = integers({0, 1});
  EXPECT_EQ(number_over(scores, labels, [](const Tensor& s, const Tensor& y) { return precision(s, y); }), 0);
  EXPECT_EQ(
      number_over(scores, labels,
                  [](const Tensor& s, const Tensor& y) { return precision(s, y, {.if_undefined = 1}); }),
      1);
}

TEST(Metrics, VarianceOfEqualLabels) {
  const auto r_squared = [](const Tensor& s, const Tensor& y) { return r2(s, y); };
  const Array labels = floats({3}, {0.1F, 0.1F, 0.1F});
  EXPECT_EQ(number_over(labels, labels, r_squared), 1);
  EXPECT_EQ(number_over(floats({3}, {0.1F, 0.2F, 0.1F}), labels, r_squared), 0);
}

TEST(Metrics, OfNoSamplesAreNotANumber) {
  for (const auto& make :
       {MakeOfTwo([](const Tensor&p, const Tensor&y) { return r2(p, y); }),
        MakeOfTwo([](const Tensor&p, const Tensor&y) { return mean_absolute_error(p, y); }),
        MakeOfTwo([](const Tensor&p, const Tensor&y) { return root_mean_squared_error(p, y); })})
    EXPECT_TRUE(std::isnan(number_over(floats({0, 2}, {}), floats({0, 2}, {}), make)));
}

TEST(Metrics, RefuseShapesThatDoNotFit) {
  const auto of_accuracy = [](const Tensor& s, const Tensor& y) { return accuracy(s, y); };
  EXPECT_THAT(refusal_over(floats({2, 3}, std::vector<float>(6)), integers({0, 1, 2}), of_accuracy),
              HasSubstr("wanted are scores [batch]"));
  EXPECT_THAT(refusal_over(floats({2, 3}, std::vector<float>(6)), floats({2}, {0, 1}), of_accuracy),
              HasSubstr("classes are integers"));
  EXPECT_THAT(refusal_over(floats({2}, {0, 1}), integers({0, 1}),
                           [](const Tensor& s, const Tensor& y) { return top_k_accuracy(s, y, 2); }),
              HasSubstr("k is 2"));
  EXPECT_THAT(refusal_over(floats({2}, {0, 1}), integers({0, 1}),
                           [](const Tensor& s, const Tensor& y) {
                             return accuracy(s, y, {.class_weights = {1, 2, 3}});
                           }),
              HasSubstr("3 class_weights for 2 classes"));
  const double nan = std::nan("");
  EXPECT_THAT(refusal_over(floats({2}, {0, 1}), integers({0, 1}),
                           [](const Tensor& s, const Tensor& y) {
                             return f1(s, y, {.class_weights = {0, 0}, .class_names = {"good", "fraud"}});
                           }),
              AllOf(HasSubstr("metrics::f1"), HasSubstr("all class_weights are 0 (of good, fraud)")));
  EXPECT_THAT(refusal_over(floats({2}, {0, 1}), integers({0, 1}),
                           [&](const Tensor& s, const Tensor& y) {
                             return accuracy(s, y, {.class_weights = {1, -nan}});
                           }),
              HasSubstr("a class weight is nan;"));
  EXPECT_THAT(
      refusal_over(floats({2}, {0, 1}), integers({0, 1}),
                   [&](const Tensor& s, const Tensor& y) { return accuracy(s, y, {.threshold = nan}); }),
      HasSubstr("the threshold is NaN"));
  EXPECT_THAT(
      refusal_over(floats({2}, {0, 1}), integers({0, 1}),
                   [&](const Tensor& s, const Tensor& y) { return recall(s, y, {.threshold = nan}); }),
      HasSubstr("the threshold is NaN"));
  for (const auto& make :
       {MakeOfTwo([](const Tensor&s, const Tensor&y) { return accuracy(s, y, {.threshold = 0.9}); }),
        MakeOfTwo([](const Tensor&s, const Tensor&y) { return recall(s, y, {.threshold = 0.9}); }),
        MakeOfTwo([](const Tensor&s, const Tensor&y) { return confusion_matrix(s, y, {.threshold = 0.9}); })})
    EXPECT_THAT(refusal_over(floats({2, 3}, std::vector<float>(6)), integers({0, 1}), make),
                HasSubstr("the threshold is 0.9, but of 3 classes the one that scores highest"));
  EXPECT_THAT(
      refusal_over(floats({2, 3}, std::vector<float>(6)), integers({0, 1}),
                   [](const Tensor& s, const Tensor& y) { return f1(s, y, {.average = Average::kBinary}); }),
      HasSubstr("kBinary is for one decision"));
  EXPECT_THAT(refusal_over(floats({2, 1}, {0, 1}), floats({2, 2}, {0, 1, 2, 3}),
                           [](const Tensor& p, const Tensor& y) { return mean_absolute_error(p, y); }),
              HasSubstr("wanted is one shape"));
  EXPECT_THAT(refusal_over(floats({2, 2}, {0, 1, 0, 1}), floats({2, 2}, {0, 1, 0, 1}),
                           [](const Tensor& s, const Tensor& y) { return confusion_matrix(s, y); }),
              HasSubstr("several decisions"));
}

TEST(Metrics, NameTheSampleWithALabelOrAProbabilityThatIsNone) {
  const Array scores = floats({2, 3}, {0, 0, 1, 0, 0, 1.5F});
  EXPECT_THAT(
      refusal_over(scores, integers({0, 3}), [](const Tensor& s, const Tensor& y) { return accuracy(s, y); }),
      HasSubstr("sample 1: the label is 3; labels are whole numbers from 0 to 2"));
  EXPECT_THAT(
      refusal_over(scores, integers({0, 2}), [](const Tensor& s, const Tensor& y) { return log_loss(s, y); }),
      HasSubstr("sample 1: a probability is 1.5, outside of [0, 1]"));
  EXPECT_THAT(refusal_over(floats({2}, {0, -2}), integers({0, 1}),
                           [](const Tensor& s, const Tensor& y) { return roc_auc(s, y, {.bins = 4}); }),
              HasSubstr("the score is -2"));
  EXPECT_THAT(refusal_over(floats({2}, {0, 1}), integers({0, 2}),
                           [](const Tensor& s, const Tensor& y) { return roc_auc(s, y); }),
              HasSubstr("the label of a decision is 2"));
}

TEST(Metrics, ASampleOfWeightZeroIsNotThere) {
  const std::vector<Array> inputs = {floats({3}, {1, 1, 0}), integers({1, 0, 7})};
  const Array weights = floats({3}, {1, 1, 0});
  const Metric metric = metric_over(
      [](const std::vector<Tensor>& in, const Tensor& w) { return accuracy(in[0], in[1], {.weights = w}); },
      inputs, weights);
  EXPECT_EQ(evaluate(metric, inputs, weights).numbers[0].second, 0.5);
}

// A threshold of 0.5 cuts logits in the wrong place.
TEST(Metrics, ScoresThatAreNoProbabilitiesAreSaidOnce) {
  const auto said_of = [](const Array& scores, const Array& labels, const MakeOfTwo& make) {
    testing::internal::CaptureStderr();
    result_over(scores, labels, make);
    return testing::internal::GetCapturedStderr();
  };
  const Array logits = floats({4}, {-3, 0.25F, 0.75F, 9}), labels = integers({0, 1, 1, 1});
  const MakeOfTwo all[] = {
      [](const Tensor& s, const Tensor& y) { return accuracy(s, y); },
      [](const Tensor& s, const Tensor& y) { return f1(s, y); },
      [](const Tensor& s, const Tensor& y) { return per_class_table(s, y); },
      [](const Tensor& s, const Tensor& y) { return confusion_matrix(s, y); },
  };
  for (const MakeOfTwo& make : all) {
    const std::string said = said_of(logits, labels, make);
    EXPECT_THAT(said, HasSubstr("a score is -3, which is no probability"));
    EXPECT_THAT(said, HasSubstr("corners_test.cc:"));
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
    EXPECT_EQ(said_of(floats({4}, {0, 1, 0.5F, 1.000001F}), labels, make), "");
  }
  EXPECT_THAT(said_of(floats({2, 2}, {0, 1, 5, 1}), floats({2, 2}, {0, 1, 1, 1}),
                      [](const Tensor& s, const Tensor& y) { return accuracy(s, y); }),
              HasSubstr("a score is 5"));
  const auto of_logits = [](const Tensor& s, const Tensor& y) { return accuracy(s, y, {.threshold = 0}); };
  EXPECT_EQ(said_of(logits, labels, of_logits), "");
  EXPECT_EQ(number_over(logits, labels, of_logits), 1);
}

}  // namespace
}  // namespace mox::metrics
