// What is followed over evaluations and given by none of them, or by two names that are one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FollowedMetrics : public SmallRun {
 protected:
  // Evaluated after the steps 10 and 20, with the metrics that are given for the samples and labels of 0.
  RunSpec following(const std::string& metric,
                    const std::function<metrics::NamedMetrics(const Tensor&, const Tensor&)>& metrics) {
    auto s = spec();
    s.model_fn = [metrics](const Inputs& in, ModeKeys mode) {
      ModelSpec model = constant_slope_model(in, mode);
      model.metrics = metrics(sigmoid(in[0]), in[0] * 0.0f);
      return model;
    };
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_steps = 10;
    s.max_number_of_steps = 20;
    s.keep_best = {{.metric = metric, .larger_is_better = true}};
    s.hooks = {before_run_hook([this](Session&) { ++steps_; })};
    return s;
  }
  int steps_ = 0;
};

// A metric with parts is no number itself, and has no other parts.
TEST_F(FollowedMetrics, PartsThatAMetricHasNotAreRefusedBeforeTheFirstStep) {
  const auto of_all_kinds = [](const Tensor& p, const Tensor& y) -> metrics::NamedMetrics {
    const auto each =
        metrics::f1(p, y, {.class_names = {"dark", "light"}, .average = metrics::Average::kPerClass});
    return {{"classes", metrics::per_class_table(p, y)},
            {"each", each},
            {"matrix", metrics::confusion_matrix(p, y)},
            {"plain", metrics::accuracy(p, y)}};
  };
  for (const char* metric : {"classes", "classes/F1", "each", "each/2", "matrix", "matrix/0", "plain/0"}) {
    const auto s = following(metric, of_all_kinds);
    EXPECT_THAT(message_of_run<ConfigError>(s),
                HasSubstr("which no evaluation gives; model_fn's log_info and metrics are loss, mean, "
                          "classes/precision, classes/recall, classes/f1, each/dark, each/light, plain"))
        << metric;
    EXPECT_EQ(run(s), 2) << metric;
  }
  EXPECT_EQ(steps_, 0);
  for (const char* metric : {"classes/f1", "each/light", "plain"}) {
    auto s = following(metric, of_all_kinds);
    s.log_dir = fresh_directory("followed_parts");
    EXPECT_EQ(run(s), 0) << metric;
  }
}

// Of a metric of the program's only the evaluation tells; the steps up to it are not lost.
TEST_F(FollowedMetrics, OneThatTheFirstEvaluationDoesNotGiveLosesNoStep) {
  const auto s = following("own/b", [](const Tensor& p, const Tensor&) -> metrics::NamedMetrics {
    return {{"own",
             {.inputs = {p},
              .add = [](const metrics::Sample&, metrics::State&) {},
              .result = [](const metrics::State&) -> metrics::Result {
                return {{{"a", 1.0}}};
              }}}};
  });
  EXPECT_THAT(message_of_run<ConfigError>(s),
              AllOf(HasSubstr("'own/b'"), HasSubstr("own/a"), HasSubstr("follow one of these")));
  EXPECT_EQ(steps_, 10);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 10);
}

metrics::Metric metric_of(const Tensor& values, const std::vector<std::string>& parts, bool tells) {
  metrics::Metric metric{.inputs = {values}, .add = [](const metrics::Sample&, metrics::State&) {}};
  metric.result = [parts](const metrics::State&) {
    std::vector<std::pair<std::string, double>> numbers;
    for (const std::string& part : parts) numbers.emplace_back(part, 0.5);
    return metrics::Result(std::move(numbers));
  };
  if (tells) metric.parts = parts;
  return metric;
}

// One of them would be lost in metrics.jsonl and results.json, and the best be that of both.
TEST_F(FollowedMetrics, TwoNumbersOfOneNameAreRefused) {
  for (const bool tells : {true, false}) {
    const auto two = [&](const Tensor& p, const Tensor&) -> metrics::NamedMetrics {
      return {{"f1", metric_of(p, {"", "crane"}, tells)}, {"f1/crane", metric_of(p, {""}, tells)}};
    };
    EXPECT_THAT(message_of_run<InvalidArgument>(following("loss", two)), HasSubstr("'f1/crane'"));
    EXPECT_EQ(steps_, tells ? 0 : 10);
    const auto twins = [&](const Tensor& p, const Tensor&) -> metrics::NamedMetrics {
      return {{"f1", metric_of(p, {"crane", "crane"}, tells)}};
    };
    EXPECT_THAT(message_of_run<InvalidArgument>(following("loss", twins)), HasSubstr("'f1/crane'"));
    const auto none = [](const Tensor&, const Tensor&) { return metrics::NamedMetrics(); };
    auto s = following("loss", none);
    s.model_fn = [&, of_metrics = s.model_fn](const Inputs& in, ModeKeys mode) {
      ModelSpec model = of_metrics(in, mode);
      model.log_info.emplace_back("f1/crane", reduce_mean(in[0]));
      model.metrics = {{"f1", metric_of(in[0], {"crane"}, tells)}};
      return model;
    };
    EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("'f1/crane'"));
    fresh_directory("small_run");
    steps_ = 0;
  }
}

TEST_F(FollowedMetrics, DirectionsAreThoseOfTheLongestName) {
  using metrics::Direction;
  auto s = following("score/auc", [](const Tensor& p, const Tensor& y) -> metrics::NamedMetrics {
    return {{"score", metrics::root_mean_squared_error(p, y)},
            {"score/auc", metrics::roc_auc(p, y)},
            {"of/cost", metric_of(p, {"a"}, true)},
            {"of", metrics::accuracy(p, y)}};
  });
  s.model_fn = [of_metrics = s.model_fn](const Inputs& in, ModeKeys mode) {
    ModelSpec model = of_metrics(in, mode);
    model.log_info.emplace_back("of/loss", model.loss);
    model.metrics.emplace_back("own", metric_of(in[0], {"a"}, false));
    model.metrics.back().second.direction = Direction::kSmallerIsBetter;
    return model;
  };
  auto hook = std::make_shared<CallbackHook>();
  std::vector<std::string> found;
  hook->on_create = [&](Session& session) {
    for (const char* name : {"score", "score/auc", "of/cost/a", "of", "of/loss", "own/a"})
      found.emplace_back(session.direction(name) ? to_string(*session.direction(name)) : "");
  };
  s.hooks.push_back(hook);
  run_or_throw(s);
  EXPECT_THAT(found, testing::ElementsAre("min", "max", "", "max", "min", "min"));
}

// Else "score_loss" would go by its name, downwards, and keep_best keep the worst.
TEST_F(FollowedMetrics, ADirectionOfNothingIsRefused) {
  auto s = following("loss", [](const Tensor&, const Tensor&) { return metrics::NamedMetrics(); });
  std::string directed;
  s.model_fn = [&](const Inputs& in, ModeKeys mode) {
    ModelSpec model = constant_slope_model(in, mode);
    if (mode == ModeKeys::TRAIN) model.log_info.emplace_back("of_training", reduce_mean(in[0]));
    if (mode == ModeKeys::EVAL) model.metrics = {{"own", metric_of(in[0], {"a"}, false)}};
    model.directions = {{directed, metrics::Direction::kLargerIsBetter}};
    return model;
  };
  directed = "maen";
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              AllOf(HasSubstr("directions has 'maen'"), HasSubstr("loss, mean")));
  EXPECT_EQ(steps_, 0);
  for (const char* known : {"mean", "of_training", "own/a"}) {
    directed = known;
    s.log_dir = fresh_directory("directed");
    run_or_throw(s);
  }
  // Without evaluations nobody knows what those would have.
  s.inter_mode = std::nullopt;
  s.keep_best.reset();
  s.log_dir = fresh_directory("directed");
  run_or_throw(s);
}

// As ImageNet's labels have cranes of two kinds.
TEST_F(FollowedMetrics, TablesKeepAllRowsOfOneName) {
  auto s = following("loss", [](const Tensor& p, const Tensor& y) -> metrics::NamedMetrics {
    return {{"confusion", metrics::confusion_matrix(p, y, {.class_names = {"crane", "crane"}})}};
  });
  run_or_throw(s);
  s.run_mode = ModeKeys::EVAL;
  run_or_throw(s);
  const auto results = nlohmann::json::parse(read_file(log_dir_ + "/results.json"));
  const auto& rows = results["eval"]["tables"]["confusion"]["rows"];
  EXPECT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows.contains("crane") && rows.contains("crane (2)"));
}

}  // namespace
}  // namespace mox
