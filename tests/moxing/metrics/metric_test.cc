// A metric of a program's own, and what the state and the evaluation promise to all.
#include "moxing/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/moxing/metrics/metric_arrays.h"
#include "tests/support/message_of.h"

namespace mox::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Metric median_of(const Tensor& values) {
  return {.inputs = {values},
          .add = [](const Sample& sample, State& state) { state.keep(sample.values[0]); },
          .result = [](const State& state) { return state.kept()[state.kept().size() / 2]; }};
}

Metric relative_error(const Tensor& predictions, const Tensor& labels) {
  return {.inputs = {predictions, labels},
          .direction = Direction::kSmallerIsBetter,
          .add =
              [](const Sample& sample, State& state) {
                const double p = sample.values[0][0], y = sample.values[1][0];
                state.sum(0).add_product(sample.weight, std::abs(p - y) / std::abs(y));
                state.sum(1).add(sample.weight);
              },
          .result = [](const State& state) { return state.sum(0).value() / state.sum(1).value(); }};
}

TEST(Metric, OfAProgramsOwnFromSums) {
  const std::vector<Array> inputs = {Array::from<float>({3}, {1, 2, 6}), Array::from<float>({3}, {2, 2, 4})};
  const auto make = [](const std::vector<Tensor>& in, const Tensor&) { return relative_error(in[0], in[1]); };
  const Metric metric = metric_over(make, inputs, {});
  EXPECT_DOUBLE_EQ(evaluate(metric, inputs).numbers[0].second, (0.5 + 0 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(evaluate(metric, inputs, Array::from<float>({3}, {1, 0, 3})).numbers[0].second, 0.5);
}

TEST(Metric, OfAProgramsOwnFromKeptRowsSeesThemInOrder) {
  const std::vector<Array> inputs = {Array::from<int64_t>({5}, {9, 1, 7, 3, 5})};
  const Metric metric =
      metric_over([](const std::vector<Tensor>& in, const Tensor&) { return median_of(in[0]); }, inputs, {});
  EXPECT_EQ(evaluate(metric, inputs).numbers[0].second, 5);
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(result_in_parts(metric, inputs, {}, random).numbers[0].second, 5);
}

TEST(Metric, AWeightThatIsNoneNamesTheSample) {
  const std::vector<Array> inputs = {Array::from<float>({2}, {1, 2}), Array::from<float>({2}, {1, 2})};
  const auto make = [](const std::vector<Tensor>& in, const Tensor&) { return relative_error(in[0], in[1]); };
  const Metric metric = metric_over(make, inputs, {});
  for (const float weight : {-1.0F, std::nanf(""), HUGE_VALF}) {
    State state;
    EXPECT_THAT(message_of<InvalidArgument>([&] {
                  add_batch(metric, inputs, Array::from<float>({2}, {1, weight}), 40, state);
                }),
                HasSubstr("sample 41: its weight is"));
  }
  State state;
  EXPECT_THROW(add_batch(metric, inputs, Array::from<float>({1}, {1}), 0, state), InvalidArgument);
  EXPECT_THROW(add_batch(metric, std::vector<Array>{inputs[0], Array(DType::kFloat32, {3})}, {}, 0, state),
               InvalidArgument);
}

TEST(MetricState, GoesToBytesAndBack) {
  State state;
  state.sum(2).add(0.1);
  state.sum(2).add(1e30);
  state.keep(std::vector<double>{2, 1});
  state.keep(std::vector<double>{-1, std::nan("")});
  state.count_sample();
  State copy = State::from_bytes(state.to_bytes());
  EXPECT_EQ(copy.sum(2).value(), state.sum(2).value());
  EXPECT_EQ(copy.sum(2).remainder(), state.sum(2).remainder());
  EXPECT_TRUE(copy.sum(0).is_zero());
  EXPECT_TRUE(copy.sum(9).is_zero());
  EXPECT_EQ(copy.samples(), 1);
  copy.sort_kept();
  EXPECT_EQ(copy.kept()[0], -1);
  EXPECT_TRUE(std::isnan(copy.kept()[1]));
  EXPECT_EQ(copy.kept()[2], 2);
}

TEST(MetricState, RefusesBytesThatAreNone) {
  State state;
  state.sum(0).add(1);
  state.keep(std::vector<double>{2, 1});
  const std::string bytes = state.to_bytes();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(State::from_bytes(std::string_view(bytes).substr(0, length)), DataError) << length;
  EXPECT_THROW(State::from_bytes(bytes + "x"), DataError);
}

TEST(MetricState, RowsHaveOneLength) {
  State state;
  state.keep(std::vector<double>{1, 2});
  EXPECT_THROW(state.keep(std::vector<double>{1}), InvalidArgument);
  State other;
  other.keep(std::vector<double>{1});
  EXPECT_THROW(state.merge(other), InvalidArgument);
}

TEST(Direction, IsToldByUsualWords) {
  for (const char* name : {"loss", "my_loss", "mae", "mse", "rmse", "error", "err", "nll", "perplexity",
                           "cross_entropy", "distance", "eval/Loss"})
    EXPECT_EQ(direction_of_name(name), Direction::kSmallerIsBetter) << name;
  for (const char* name : {"accuracy", "auc", "roc_auc", "top5", "F1", "r2", "precision/cat"})
    EXPECT_EQ(direction_of_name(name), Direction::kLargerIsBetter) << name;
  for (const char* name : {"value", "glossary", "macro", "", "accuracy_loss"})
    EXPECT_EQ(direction_of_name(name), std::nullopt) << name;
  EXPECT_EQ(direction_of_name("log_likelihood"), Direction::kLargerIsBetter);
  EXPECT_EQ(direction_of_name("negative_log_likelihood"), Direction::kSmallerIsBetter);
  EXPECT_EQ(direction_from_string("max"), Direction::kLargerIsBetter);
  EXPECT_EQ(direction_from_string(to_string(Direction::kSmallerIsBetter)), Direction::kSmallerIsBetter);
  EXPECT_THROW(direction_from_string("up"), InvalidArgument);
}

}  // namespace
}  // namespace mox::metrics
