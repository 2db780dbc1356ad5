// Every metric against what scikit-learn says (tests/fixtures/make_metric_fixtures.py), over the whole at
// once and in parts.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "moxing/metrics/metrics.h"
#include "tests/moxing/metrics/metric_arrays.h"

namespace mox::metrics {
namespace {

using nlohmann::json;

std::vector<double> flat(const json& numbers) {
  std::vector<double> values;
  for (const json& entry : numbers) {
    if (entry.is_array())
      for (const double value : flat(entry)) values.push_back(value);
    else
      values.push_back(entry.get<double>());
  }
  return values;
}

Shape shape_of(const json& numbers) {
  const auto rows = static_cast<int64_t>(numbers.size());
  return numbers[0].is_array() ? Shape{rows, static_cast<int64_t>(numbers[0].size())} : Shape{rows};
}

Array scaled(const json& numbers, double unit) {
  std::vector<float> values;
  for (const double value : flat(numbers)) values.push_back(static_cast<float>(value / unit));
  return Array::from<float>(shape_of(numbers), values);
}

Array labels_of(const json& numbers) {
  std::vector<int32_t> values;
  for (const double value : flat(numbers)) values.push_back(static_cast<int32_t>(value));
  return Array::from<int32_t>(shape_of(numbers), values);
}

Average average_of(const json& test) {
  static const std::map<std::string, Average> kAverages = {{"binary", Average::kBinary},
                                                           {"macro", Average::kMacro},
                                                           {"micro", Average::kMicro},
                                                           {"weighted", Average::kWeighted},
                                                           {"per_class", Average::kPerClass}};
  return kAverages.at(test.at("average"));
}

Normalisation normalisation_of(const json& test) {
  static const std::map<std::string, Normalisation> kNormalisations = {
      {"none", Normalisation::kNone},
      {"labels", Normalisation::kLabels},
      {"decisions", Normalisation::kDecisions},
      {"all", Normalisation::kAll}};
  return kNormalisations.at(test.at("normalisation"));
}

std::vector<double> class_weights_of(const json& test) {
  std::vector<double> weights;
  if (test.contains("class_weights") && !test["class_weights"].is_null())
    for (const double weight : flat(test["class_weights"])) weights.push_back(weight / 8);
  return weights;
}

// Of several classes none is: the largest score decides.
double threshold_of(const json& test) {
  return test.at("kind") == "multiclass" ? AccuracyOptions().threshold : test.at("threshold").get<double>();
}

Metric decision_metric_of(const std::string& name, const json& test, const Tensor& s, const Tensor& y,
                          const Tensor& w) {
  DecisionOptions options{.weights = w, .class_weights = class_weights_of(test)};
  if (name == "per_class_table") return per_class_table(s, y, options);
  options.average = average_of(test);
  options.threshold = threshold_of(test);
  return name == "precision" ? precision(s, y, options)
         : name == "recall"  ? recall(s, y, options)
                             : f1(s, y, options);
}

Metric metric_of(const json& test, const std::vector<Tensor>& in, const Tensor& w) {
  const std::string name = test.at("metric");
  const std::vector<double> cw = class_weights_of(test);
  const Tensor &s = in[0], y = in.size() > 1 ? in[1] : Tensor();
  if (name == "mean") return mean(s, {.weights = w});
  if (name == "accuracy")
    return accuracy(s, y, {.weights = w, .class_weights = cw, .threshold = threshold_of(test)});
  if (name == "top_k_accuracy")
    return top_k_accuracy(s, y, test.at("k"), {.weights = w, .class_weights = cw});
  if (name == "confusion_matrix")
    return confusion_matrix(s, y,
                            {.weights = w, .class_weights = cw, .normalisation = normalisation_of(test)});
  if (name == "roc_auc" || name == "pr_auc") {
    const AucOptions options{
        .weights = w, .class_weights = cw, .bins = test.at("bins"), .average = average_of(test)};
    return name == "roc_auc" ? roc_auc(s, y, options) : pr_auc(s, y, options);
  }
  if (name == "log_loss") return log_loss(s, y, {.weights = w, .class_weights = cw});
  if (name == "brier_score") return brier_score(s, y, {.weights = w, .class_weights = cw});
  if (name == "expected_calibration_error")
    return expected_calibration_error(s, y, {.weights = w, .class_weights = cw, .bins = test.at("bins")});
  if (name == "mean_absolute_error") return mean_absolute_error(s, y, {.weights = w});
  if (name == "root_mean_squared_error") return root_mean_squared_error(s, y, {.weights = w});
  if (name == "r2") return r2(s, y, {.weights = w});
  return decision_metric_of(name, test, s, y, w);
}

// All numbers of a result, in an order of their own.
std::vector<double> numbers_of(const Result& result) {
  std::vector<double> numbers;
  for (const auto& [name, number] : result.numbers) numbers.push_back(number);
  for (const auto& [name, row] : result.table.rows) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

void expect_near(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 1e-12 * std::max(1.0, std::abs(expected))) << what;
}

void expect_expected(const Result& result, const json& expected, const std::string& what) {
  if (expected.is_number()) {
    ASSERT_EQ(result.numbers.size(), 1U) << what;
    expect_near(result.numbers[0].second, expected, what);
  } else if (expected.is_object()) {  // the rows that scikit-learn shows: classes that occur, and the means
    for (const auto& [name, row] : result.table.rows) {
      if (!expected.contains(name)) continue;
      for (size_t i = 0; i < row.size(); ++i) expect_near(row[i], expected[name][i], what + " of " + name);
    }
    EXPECT_GE(result.table.rows.size(), expected.size()) << what;
  } else if (result.numbers.empty()) {
    ASSERT_EQ(result.table.rows.size(), expected.size()) << what;
    for (size_t r = 0; r < expected.size(); ++r)
      for (size_t c = 0; c < expected.size(); ++c)
        expect_near(result.table.rows[r].second.at(c), expected[r][c], what);
  } else {
    ASSERT_EQ(result.numbers.size(), expected.size()) << what;
    for (size_t i = 0; i < expected.size(); ++i) expect_near(result.numbers[i].second, expected[i], what);
  }
}

TEST(MetricsOfScikitLearn, AgreeInTwoHundredCasesAndHaveTheSameBitsInParts) {
  std::ifstream file(MOX_SOURCE_DIR "/tests/fixtures/metric_fixtures.json");
  const json tests = json::parse(file);
  ASSERT_GE(tests.size(), 200U);
  std::mt19937 random(7);
  for (size_t number = 0; number < tests.size(); ++number) {
    const json& test = tests[number];
    const std::string what = "case " + std::to_string(number) + ": " + test["metric"].get<std::string>();
    std::vector<Array> inputs = {scaled(test["scores"], 1024)};
    if (!test["labels"].is_null())
      inputs.push_back(test["kind"] == "regression" ? scaled(test["labels"], 1024)
                                                    : labels_of(test["labels"]));
    const Array weights = test["weights"].is_null() ? Array() : scaled(test["weights"], 8);
    const Metric metric =
        metric_over([&](const std::vector<Tensor>& in, const Tensor& w) { return metric_of(test, in, w); },
                    inputs, weights);
    const Result whole = evaluate(metric, inputs, weights);
    expect_expected(whole, test["expected"], what);
    for (int repetition = 0; repetition < 4; ++repetition) {
      const Result parts = result_in_parts(metric, inputs, weights, random);
      const auto expected = numbers_of(whole), actual = numbers_of(parts);
      ASSERT_EQ(actual.size(), expected.size()) << what;
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_EQ(std::bit_cast<uint64_t>(actual[i]), std::bit_cast<uint64_t>(expected[i])) << what;
    }
  }
}

}  // namespace
}  // namespace mox::metrics
