// Evaluations: metrics over all samples, what is no mean, limits, directions, what is kept of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "moxing/hooks/hooks.h"
#include "moxing/metrics/metrics.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/data/pipeline.h"
#include "tests/moxing/small_run.h"
#include "tests/support/temporary_directory.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EvaluationTest : public SmallRun {
 protected:
  // 103 samples with a score in [0, 1], a label that it tells something of, and a weight.
  static Dataset scored_data() {
    Array score(DType::kFloat32, {103}), label(DType::kInt32, {103}), weight(DType::kFloat32, {103});
    for (size_t i = 0; i < 103; ++i) {
      const auto value = static_cast<float>((i * 37) % 101) / 101.0F;
      score.values<float>()[i] = value;
      label.values<int32_t>()[i] = (i * 59) % 101 < 20 + (i * 37) % 101 / 2 ? 1 : 0;
      weight.values<float>()[i] = static_cast<float>(i % 5);
    }
    return Dataset::from_arrays({score, label, weight});
  }
  static ModelSpec scored_model(const Inputs& in, ModeKeys) {
    auto [score, label, weight] = in.take<3>();
    const Tensor w = get_variable("w", {}, zeros());
    const Tensor mean_score = reduce_mean(score);
    return {.loss = w + mean_score * 0.0f,
            .log_info = {{"loss", w + 0.0f}, {"auc", mean_score}, {"largest", reduce_max(score)}},
            .metrics = {{"auc", metrics::roc_auc(score, label)},
                        {"weighted_auc", metrics::roc_auc(score, label, {.weights = weight})},
                        {"score", metrics::mean(score)},
                        {"confusion", metrics::confusion_matrix(score, label)},
                        {"each", metrics::recall(score, label, {.average = metrics::Average::kPerClass})}}};
  }
  RunSpec scored() {
    auto s = spec();
    s.input_fn = [](ModeKeys mode) {
      return mode == ModeKeys::TRAIN ? scored_data().repeat() : scored_data();
    };
    s.model_fn = scored_model;
    s.inter_mode = ModeKeys::EVAL;
    return s;
  }
  // An evaluation of a run that has been trained in log_dir_.
  RunSpec evaluation_of_trained() {
    auto s = scored();
    s.run_mode = ModeKeys::TRAIN;
    s.log_dir = log_dir_;
    run_or_throw(s);
    s.run_mode = ModeKeys::EVAL;
    return s;
  }
  static double value_of(const Metrics& metrics, const std::string& name) {
    for (const auto& [known, value] : metrics)
      if (known == name) return value;
    ADD_FAILURE() << "the evaluation has no '" << name << "'";
    return 0;
  }
};

TEST_F(EvaluationTest, ASignalEndsItInGoodOrder) {
  auto s = scored();
  run_or_throw(s);
  s.run_mode = ModeKeys::EVAL;
  s.eval_batch_size = 10;
  std::filesystem::remove(log_dir_ + "/results.json");
  bool knows = false;
  const auto hook = std::make_shared<CallbackHook>();
  hook->on_after = [](Session&, const StepResult&) { std::raise(SIGTERM); };
  hook->on_evaluation = [](Session&, const Metrics&) { ADD_FAILURE() << "there is no evaluation"; };
  hook->on_end = [&](Session& session) { knows = session.interrupted(); };
  s.hooks = {hook};
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(s), kExitInterrupted);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("interrupted by SIGTERM after 10 samples: there are no metrics"));
  EXPECT_TRUE(knows);
  EXPECT_FALSE(std::filesystem::exists(log_dir_ + "/results.json"));
  // One that comes before the first batch counts, too.
  hook->on_after = {};
  s.input_fn = [](ModeKeys) {
    std::raise(SIGHUP);
    return scored_data();
  };
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(s), kExitInterrupted);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("interrupted by SIGHUP after 0 samples"));
}

// What lies there in the place of results.json is left as it is, and a warning says so.
TEST_F(EvaluationTest, ResultsThatWouldGrowAreNotGoneOnWith) {
  const ScopedConfiguration configuration({"--threads_per_device=1", "--log_level=warning"});
  const RunSpec s = evaluation_of_trained();
  // Each level is written with more blanks than the one before it.
  const std::string deep = "{\"a\":" + std::string(3000, '[') + std::string(3000, ']') + "}";
  const std::string kept = log_dir_ + "/results.json";
  for (const std::string& content : {deep, std::string("{\"a\":[[[[[[[[[1]]]]]]]]]}")}) {
    write_file_atomically(kept, content);
    testing::internal::CaptureStderr();
    run_or_throw(s);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("the results are not kept beside the checkpoint: '" + kept));
    EXPECT_EQ(read_file(kept), content);
  }
  write_file_atomically(kept, "{\"of_others\": {\"a\": [1, 2]}}");
  run_or_throw(s);
  EXPECT_THAT(read_file(kept), testing::AllOf(HasSubstr("of_others"), HasSubstr("\"eval\"")));
}

// Who may make a file in a log_dir would have what only this user may read written where all may.
TEST_F(EvaluationTest, ResultsOfAFileElsewhereAreNotWrittenAnew) {
  const ScopedConfiguration configuration({"--threads_per_device=1", "--log_level=warning"});
  const RunSpec s = evaluation_of_trained();
  const TemporaryDirectory elsewhere;
  elsewhere.write("keys.json", R"({"secret_key": "wJalrXUtnFEMI"})");
  const std::string keys = elsewhere.path() + "/keys.json", kept = log_dir_ + "/results.json";
  const auto evaluated = [&] {
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  std::filesystem::create_symlink(keys, kept);
  EXPECT_THAT(evaluated(), HasSubstr("'" + kept + "' is a link"));
  EXPECT_TRUE(std::filesystem::is_symlink(kept));
  std::filesystem::remove(kept);
  std::filesystem::create_hard_link(keys, kept);
  EXPECT_THAT(evaluated(), HasSubstr("'" + kept + "' has a second name"));
  EXPECT_EQ(std::filesystem::hard_link_count(kept), 2);
}

TEST_F(EvaluationTest, MetricsHaveTheSameBitsForAnyBatchSizeAndNumberOfDevices) {
  Metrics expected;
  for (const int64_t batch : {103, 1, 7, 64, 1000})
    for (const char* devices : {"--num_devices=1", "--num_devices=2"}) {
      const ScopedConfiguration configuration({"--threads_per_device=1", "--log_level=error", devices});
      auto s = scored();
      s.log_dir = fresh_directory("evaluation");
      s.eval_batch_size = batch;
      const Metrics metrics = run_or_throw(s).evaluation;
      if (expected.empty()) expected = metrics;
      for (const char* name : {"auc", "weighted_auc", "score", "each/0", "each/1"})
        EXPECT_EQ(std::bit_cast<uint64_t>(value_of(metrics, name)),
                  std::bit_cast<uint64_t>(value_of(expected, name)))
            << name << " with batches of " << batch << " and " << devices;
    }
  // Over all pairs of samples, by the definition.
  const auto rows = scored_data();
  Pipeline pipeline(rows.batch(103), {});
  Batch all;
  ASSERT_TRUE(pipeline.next(&all));
  const auto score = all.components[0].values<float>();
  const auto label = all.components[1].values<int32_t>();
  double won = 0, pairs = 0;
  for (size_t i = 0; i < 103; ++i)
    for (size_t j = 0; j < 103; ++j)
      if (label[i] == 1 && label[j] == 0) {
        ++pairs;
        won += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
      }
  EXPECT_NEAR(value_of(expected, "auc"), won / pairs, 1e-12);
}

TEST_F(EvaluationTest, AMetricTakesThePlaceOfALoggedValueAndWhatIsNoMeanIsNamedSo) {
  auto s = scored();
  ::testing::internal::CaptureStdout();
  const Metrics metrics = run_or_throw(s).evaluation;
  const std::string output = ::testing::internal::GetCapturedStdout();
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "largest (mean of batches)", "auc", "weighted_auc",
                                             "score", "each/0", "each/1"}));
  EXPECT_THAT(output, AllOf(HasSubstr("test auc: "), HasSubstr("test confusion"), HasSubstr("evaluation")));
}

// Of a last batch of one sample its first row is the mean of its rows.
TEST_F(EvaluationTest, AnEvaluationMayEndWithOneSample) {
  auto s = scored();
  s.eval_batch_size = 6;
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = scored_model(in, mode);
    model.log_info = {{"first", reduce_mean(slice(in[0], {0}, {1}))}, {"mean", reduce_mean(in[0])}};
    return model;
  };
  const Metrics evaluation = run_or_throw(s).evaluation;
  EXPECT_GT(value_of(evaluation, "first (mean of batches)"), 0);
  EXPECT_GT(value_of(evaluation, "mean"), 0);
}

// As names of classes may be, which come from files; and a NaN has no sign.
TEST_F(EvaluationTest, NamesAreShownOnOneLineAndNaNWithoutASign) {
  auto s = scored();
  s.save_summary_steps = 1;
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [score, label, weight] = in.take<3>();
    const Tensor w = get_variable("w", {}, zeros());
    metrics::Metric own{.inputs = {score},
                        .add = [](const metrics::Sample&, metrics::State&) {},
                        .result =
                            [](const metrics::State&) {
                              const double nan = -std::nan("");
                              return metrics::Result({{"a\nb\xe9", nan}}, {{"c\nd"}, {{"e\nf", {nan}}}});
                            }};
    return ModelSpec{.loss = w + reduce_mean(score) * 0.0f, .metrics = {{"own", std::move(own)}}};
  };
  testing::internal::CaptureStdout();
  run_or_throw(s);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, AllOf(HasSubstr("test own/a\\nb\\xe9: nan\n"), HasSubstr("test own  c\\nd\n"),
                          HasSubstr("  e\\nf     nan\n"), Not(HasSubstr("-nan"))));
  EXPECT_THAT(read_file(log_dir_ + "/metrics.jsonl"), HasSubstr(R"("own/a\\nb\\xe9":null)"));
}

TEST_F(EvaluationTest, WeightsThatAreAllZeroAreSaidOnce) {
  auto s = scored();
  s.eval_every_n_steps = 1;
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [score, label, weight] = in.take<3>();
    const Tensor w = get_variable("w", {}, zeros());
    return ModelSpec{.loss = w + reduce_mean(score) * 0.0f,
                     .metrics = {{"none", metrics::accuracy(score, label, {.weights = weight * 0.0f})},
                                 {"some", metrics::accuracy(score, label, {.weights = weight})}}};
  };
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  run_or_throw(s);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("test none: nan"));
  const std::string said = "the metric 'none': all 103 samples of the evaluation have the weight 0";
  EXPECT_THAT(text, HasSubstr(said));
  EXPECT_EQ(text.find(said), text.rfind(said)) << text;
  EXPECT_THAT(text, Not(HasSubstr("'some'")));
}

// What these measure is NaN, or 0 where a class that has no sample counts as 0.
TEST_F(EvaluationTest, WeightsOfClassesThatLeaveNoSampleAreSaid) {
  auto s = scored();
  s.model_fn = [](const Inputs& in, ModeKeys) {
    auto [score, label, weight] = in.take<3>();
    const Tensor w = get_variable("w", {}, zeros());
    const Tensor p = sigmoid(score), zero = weight * 0.0f;  // all samples are of class 0
    const std::vector<double> second = {0, 2}, first = {2, 0};
    return ModelSpec{
        .loss = w + reduce_mean(score) * 0.0f,
        .metrics = {{"right", metrics::accuracy(p, zero, {.class_weights = second})},
                    {"matrix", metrics::confusion_matrix(p, zero, {.class_weights = second})},
                    {"table", metrics::per_class_table(p, zero, {.class_weights = second})},
                    {"area", metrics::roc_auc(p, zero, {.class_weights = second})},
                    {"nats", metrics::log_loss(p, zero, {.class_weights = second})},
                    {"ece", metrics::expected_calibration_error(p, zero, {.class_weights = second})},
                    {"kept", metrics::accuracy(p, zero, {.class_weights = first})}}};
  };
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
  testing::internal::CaptureStderr();
  run_or_throw(s);
  const std::string text = testing::internal::GetCapturedStderr();
  for (const char* name : {"right", "matrix", "table", "area", "nats", "ece"})
    EXPECT_THAT(text, HasSubstr(fmt::format("the metric '{}': all 103 samples of the evaluation", name)));
  EXPECT_THAT(text, Not(HasSubstr("'kept'")));
}

TEST_F(EvaluationTest, EvalStepsTakesTheFirstBatches) {
  const ScopedConfiguration configuration({"--threads=1", "--log_level=error", "--eval_steps=2"});
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.eval_batch_size = 1;
  EXPECT_EQ(value_of(run_or_throw(s).evaluation, "mean"), 0.5);  // of 0, 1, 2, 3
  s.input_fn = [](ModeKeys) {
    return counting_data(10).repeat().filter([](const Element&) { return true; });
  };
  s.log_dir = fresh_directory("endless_evaluation");
  EXPECT_EQ(value_of(run_or_throw(s).evaluation, "mean"), 0.5) << "data without end";
}

TEST_F(EvaluationTest, MetricsAreWrittenDown) {
  auto s = scored();
  s.save_summary_steps = 1;
  s.eval_every_n_steps = 2;
  const Metrics metrics = run_or_throw(s).evaluation;
  std::istringstream lines(read_file(log_dir_ + "/metrics.jsonl"));
  int evaluations = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    if (!entry.contains("evaluation")) continue;
    ++evaluations;
    EXPECT_EQ(entry.at("samples"), 103);
    EXPECT_EQ(entry.at("auc").get<double>(), value_of(metrics, "auc"));
    EXPECT_TRUE(entry.contains("each/1"));
  }
  EXPECT_EQ(evaluations, 2);
}

TEST_F(EvaluationTest, TheSummaryKnowsTheDirectionOfAMeanOfBatches) {
  auto s = scored();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = scored_model(in, mode);
    model.log_info = {{"loss", model.loss}, {"spread", reduce_max(in[0]) * (model.loss + 1.0f)}};
    model.directions = {{"spread", metrics::Direction::kSmallerIsBetter}};
    return model;
  };
  auto hook = std::make_shared<CallbackHook>();
  std::optional<metrics::Direction> direction;
  hook->on_create = [&](Session& session) { direction = session.direction("spread (mean of batches)"); };
  s.hooks = {hook};
  run_or_throw(s);
  EXPECT_EQ(direction, metrics::Direction::kSmallerIsBetter);
}

TEST_F(EvaluationTest, EarlyStoppingKnowsTheDirectionOfAMetric) {
  auto s = scored();
  s.eval_every_n_steps = 1;
  s.max_number_of_steps = 20;
  s.hooks = {early_stopping_hook({.metric = "weighted_auc", .patience = 2})};
  EXPECT_EQ(run_or_throw(s).global_step, 3);
  s.log_dir = fresh_directory("unknown_direction");
  s.hooks = {early_stopping_hook({.metric = "score", .patience = 2})};
  EXPECT_THAT(
      message_of_run<InvalidArgument>(s),
      AllOf(HasSubstr("'score'"),
            HasSubstr("set larger_is_better (mode: max or min), or name it in ModelSpec::directions")));
}

TEST_F(EvaluationTest, TheSummaryShowsTheBestEvaluationByItsDirectionAlsoOverAResume) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.eval_every_n_steps = 1;
  s.max_number_of_steps = 2;
  s.model_fn = [](const Inputs& in, ModeKeys) {
    const Tensor w = get_variable("w", {}, zeros());  // falls by one in each step
    const Tensor v = square(w + 3.0f) + reduce_mean(in[0]) * 0.0f;
    return ModelSpec{.loss = w + reduce_sum(in[0]) * 0.0f,
                     .log_info = {{"mae", v}, {"psnr", v}, {"weather", v}}};
  };
  run_or_throw(s);
  s.max_number_of_steps = 5;
  ::testing::internal::CaptureStdout();
  run_or_throw(s);
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(output, HasSubstr("mae          4.000  0.000 at step 3"));
  EXPECT_THAT(output, HasSubstr("psnr         4.000  4.000 at step 1"));
  EXPECT_THAT(output, HasSubstr("weather      4.000\n"));
}

TEST_F(EvaluationTest, AModelFunctionThatTellsTheMeanOfAFixedNumberIsFoundOut) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.eval_batch_size = 3;  // of 4 samples: batches of 3 and 1
  std::vector<float> divisors = {3.0f, 3.5f};
  s.model_fn = [&](const Inputs& in, ModeKeys mode) {
    ModelSpec model = constant_slope_model(in, mode);
    model.log_info.emplace_back("share", reduce_sum(in[0]) / divisors[in[0].shape()[0] == 1 ? 1 : 0]);
    return model;
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("in a batch of 1 samples the log_info 'share'"));
  divisors = {3.0f, 3.0f};  // which is a multiple of 1, too
  s.log_dir = fresh_directory("a_fixed_number");
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("in a batch of 1 samples the log_info 'share'"));
  divisors = {6.0f, 2.0f};
  s.log_dir = fresh_directory("half_the_mean");
  EXPECT_EQ(value_of(run_or_throw(s).evaluation, "share"), 0.75);
}

TEST_F(EvaluationTest, AMetricThatCannotBeIsRefused) {
  auto s = scored();
  const auto with = [&](const std::string& name, const metrics::Metric& metric) {
    s.model_fn = [=](const Inputs& in, ModeKeys mode) {
      ModelSpec model = scored_model(in, mode);
      metrics::Metric changed = metric;
      if (changed.inputs.empty() && changed.add) changed.inputs = {reduce_mean(in[0])};
      model.metrics.emplace_back(name, changed);
      return model;
    };
    return message_of_run<InvalidArgument>(s);
  };
  EXPECT_THAT(with("empty", {}), HasSubstr("the metric 'empty' needs inputs, add and result"));
  const metrics::Metric scalar{.add = [](const metrics::Sample&, metrics::State&) {},
                               .result = [](const metrics::State&) { return 0.0; }};
  EXPECT_THAT(with("whole", scalar), HasSubstr("an input of the metric 'whole' must have one row a sample"));
  EXPECT_THAT(with("step", scalar), HasSubstr("has the name of another field"));
  EXPECT_THAT(with("auc", scalar), HasSubstr("two metrics have the name 'auc'"));
}

TEST_F(EvaluationTest, AMetricThatRefusesASampleNamesItsPlaceInTheData) {
  auto s = scored();
  s.eval_batch_size = 10;
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = scored_model(in, mode);
    model.metrics = {{"loss_of_scores", metrics::log_loss(in[0] * 1.5f, in[1])}};
    return model;
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(s),
              AllOf(HasSubstr("the metric 'loss_of_scores': sample 2: a probability is 1.09")));
}

}  // namespace
}  // namespace mox
