// The hooks that come with the framework, each in a real run.
#include <gmock/gmock-more-matchers.h>

#include <cmath>
#include <limits>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class BuiltInHooks : public SmallRun {
 protected:
  // Runs and returns what went to stdout.
  static std::string output_of(const RunSpec& spec) {
    ::testing::internal::CaptureStdout();
    run_or_throw(spec);
    return ::testing::internal::GetCapturedStdout();
  }
  // The evaluation metric "score" takes these values in turn, the last one for ever.
  RunSpec scored(const std::vector<float>& scores) {
    auto s = spec();
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_steps = 1;
    s.max_number_of_steps = 8;
    s.save_model_steps = 1;
    s.model_fn = [](const Inputs& in, ModeKeys mode) {
      auto model = constant_slope_model(in, mode);
      model.log_info.emplace_back("score", get_variable("score", {}, zeros(), {.trainable = false}) + 0.0f);
      model.directions = {{"score", metrics::Direction::kSmallerIsBetter}};
      return model;
    };
    auto setter = std::make_shared<CallbackHook>();
    setter->on_after = [scores](Session& session, const StepResult&) {
      const size_t index = std::min(static_cast<size_t>(session.global_step()), scores.size()) - 1;
      session.set_variable("score", Array::scalar(scores[index]));
    };
    s.hooks = {setter};
    return s;
  }
};

TEST_F(BuiltInHooks, LoggingPrintsTheFirstStepAndEveryNth) {
  auto s = spec();
  s.log_every_n_steps = 3;
  s.max_number_of_steps = 7;
  const std::string first = output_of(s);
  for (int step : {1, 3, 6})
    EXPECT_THAT(first,
                HasSubstr("step: " + std::to_string(step) + "(global step: " + std::to_string(step) + ")"));
  for (int step : {2, 4, 5, 7})
    EXPECT_THAT(first, Not(HasSubstr("global step: " + std::to_string(step) + ")")));
  EXPECT_THAT(first, AllOf(HasSubstr("loss: 0.000  mean: 0.500"), HasSubstr("loss: -5.000  mean: 0.500")));
  s.max_number_of_steps = 9;
  const std::string resumed = output_of(s);
  EXPECT_THAT(resumed, AllOf(HasSubstr("step: 1(global step: 8)"), HasSubstr("step: 2(global step: 9)")));
}

TEST_F(BuiltInHooks, LoggingIsQuietWhenAskedTo) {
  EXPECT_THAT(output_of(spec()), Not(HasSubstr("step: 1(")));
  EXPECT_THROW(logging_hook({.every_n_steps = 0}), InvalidArgument);
}

TEST_F(BuiltInHooks, TheSummaryNamesTheReasonAndTheCheckpoint) {
  const std::string output = output_of(spec());
  EXPECT_THAT(output,
              AllOf(HasSubstr("Finished at global step 4"), HasSubstr("stopped because step 4 was reached"),
                    HasSubstr(log_dir_ + "/checkpoint-4\n"), HasSubstr(log_dir_ + "/configuration.yaml\n")));
  EXPECT_THAT(output, Not(HasSubstr("metrics.jsonl"))) << "no such file is written in this run";
  auto s = spec();
  s.save_summary_steps = 1;
  s.log_dir = fresh_directory("summary");
  EXPECT_THAT(output_of(s), HasSubstr(*s.log_dir + "/metrics.jsonl"));
}

TEST_F(BuiltInHooks, StopAtStepStops) {
  auto s = spec();
  s.hooks = {stop_at_step_hook(3)};
  EXPECT_EQ(run_or_throw(s).stop_reason, "step 3 was reached");
  EXPECT_EQ(run_or_throw(s).global_step, 3) << "at once, when it was reached before";
  EXPECT_THROW(stop_at_step_hook(0), InvalidArgument);
}

TEST_F(BuiltInHooks, NanGuardNamesStepValueAndRate) {
  auto s = spec();
  s.save_model_steps = 1;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = piecewise_constant({3}, {0.25, 0.125})});
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto model = constant_slope_model(in, mode);
    model.loss =
        model.loss + reduce_sum(maximum(in[0] - 4.0f, 0.0f)) * std::numeric_limits<float>::infinity() * 1.0f;
    return model;
  };
  const std::string message = message_of_run<NumericError>(s);  // 0 * infinity, in the first step
  EXPECT_THAT(message, AllOf(HasSubstr("global step 1 "), HasSubstr("nan"), HasSubstr("0.25")));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 0);
}

TEST_F(BuiltInHooks, NanGuardStopsAnInfiniteLossToo) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto model = constant_slope_model(in, mode);
    model.loss = model.loss + reduce_sum(exp(in[0] * 30.0f));  // infinite from 3 on
    return model;
  };
  EXPECT_THAT(message_of_run<NumericError>(s), AllOf(HasSubstr("inf at global step 2")));
}

TEST_F(BuiltInHooks, StepTimerReports) {
  auto s = spec();
  s.max_number_of_steps = 5;
  std::vector<int64_t> steps;
  s.hooks = {step_timer_hook(2, [&](double steps_per_second, double samples_per_second, int64_t step) {
    steps.push_back(step);
    EXPECT_GT(steps_per_second, 0);
    EXPECT_NEAR(samples_per_second / steps_per_second, 2, 1e-9);
  })};
  run_or_throw(s);
  EXPECT_THAT(steps, ElementsAre(2, 4));
  EXPECT_THROW(step_timer_hook(0, [](double, double, int64_t) {}), InvalidArgument);
  EXPECT_THROW(step_timer_hook(1, {}), InvalidArgument);
}

TEST_F(BuiltInHooks, EvaluationComesAtItsStepsAndOnceAtTheEnd) {
  std::vector<int64_t> steps;
  for (int64_t last : {4, 5}) {
    auto s = spec();
    s.log_dir = fresh_directory("evaluations");
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_steps = 2;
    s.max_number_of_steps = last;
    auto hook = std::make_shared<CallbackHook>();
    steps.clear();
    hook->on_evaluation = [&](Session& session, const Metrics&) { steps.push_back(session.global_step()); };
    s.hooks = {hook};
    const std::string output = output_of(s);
    EXPECT_THAT(output, AllOf(HasSubstr("evaluation at global step 2:  loss: -2.000  mean: 1.500"),
                              HasSubstr("test loss: -" + std::to_string(last) + ".0000\n"),
                              HasSubstr("test mean: 1.5000\n")));
    EXPECT_EQ(steps, last == 4 ? std::vector<int64_t>({2, 4}) : std::vector<int64_t>({2, 4, 5}));
  }
  auto s = spec();
  s.hooks = {evaluation_hook(1)};
  EXPECT_THAT(message_of_run<FailedPrecondition>(s), HasSubstr("inter_mode"));
  EXPECT_THROW(evaluation_hook(-1), InvalidArgument);
}

TEST_F(BuiltInHooks, WhatFollowsEvaluationsIsRefusedWhereThereAreNone) {
  for (const auto& hook : {early_stopping_hook({}), plateau_learning_rate_hook({})}) {
    auto s = spec();
    s.hooks = {hook};
    EXPECT_THAT(message_of_run<ConfigError>(s), AllOf(HasSubstr("'loss'"), HasSubstr("inter_mode")));
  }
}

// One evaluation at the end could stop nothing.
TEST_F(BuiltInHooks, WhatFollowsEvaluationsIsRefusedWhereTheyComeAtTheEndAlone) {
  struct OwnEvaluation : TrainingHook {
    bool evaluates() const override { return true; }
    void after_run(Session& session, const StepResult&) override { session.evaluate(); }
  };
  for (const auto& hook : {early_stopping_hook({}), plateau_learning_rate_hook({})}) {
    auto s = spec();
    s.inter_mode = ModeKeys::EVAL;
    s.hooks = {hook};
    EXPECT_THAT(message_of_run<ConfigError>(s),
                AllOf(HasSubstr("evaluates at its end alone"), HasSubstr("eval_every_n_steps")));
    s.hooks = {hook, std::make_shared<OwnEvaluation>()};
    run_or_throw(s);
    s.hooks = {hook};
    s.log_dir = fresh_directory("evaluated_by_epochs");
    s.eval_every_n_epochs = 1;
    run_or_throw(s);
  }
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.early_stopping = MonitorOptions{};
  EXPECT_THAT(message_of_run<ConfigError>(s), HasSubstr("evaluates at its end alone"));
}

TEST_F(BuiltInHooks, StepsBetweenEvaluationsThatNobodyMakesAreMentioned) {
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
  auto s = spec();
  s.eval_every_n_steps = 2;
  ::testing::internal::CaptureStderr();
  run_or_throw(s);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("eval_every_n_steps, _secs or _epochs is set, but nothing is evaluated"));
}

TEST_F(BuiltInHooks, AnEvaluationDoesNotDisturbTheTrainingData) {
  std::vector<double> means[2];
  for (int turn : {0, 1}) {
    auto s = spec();
    s.log_dir = "";
    if (turn == 1) s.inter_mode = ModeKeys::EVAL, s.eval_every_n_steps = 1;
    s.hooks = {after_run_hook(
        [&](Session&, const StepResult& result) { means[turn].push_back(result.number("mean")); })};
    run_or_throw(s);
  }
  EXPECT_EQ(means[0], means[1]);
}

TEST_F(BuiltInHooks, CheckpointsBySteps) {
  auto s = spec();
  s.save_model_steps = 3;
  s.max_number_of_steps = 4;
  run_or_throw(s);
  std::vector<int64_t> steps;
  for (const auto& entry : list_checkpoints(log_dir_)) steps.push_back(entry.step);
  EXPECT_THAT(steps, ElementsAre(0, 3, 4));
  EXPECT_THROW(checkpoint_hook({.every_n_steps = -1}), InvalidArgument);
  EXPECT_THROW(checkpoint_hook({.every_seconds = -1}), InvalidArgument);
}

TEST_F(BuiltInHooks, EarlyStoppingWaitsForItsPatience) {
  auto s = scored({3, 2, 2.5f, 1.95f, 2});
  s.hooks.push_back(early_stopping_hook({.metric = "score", .min_change = 0.1, .patience = 3}));
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(result.global_step, 5) << "2 was the best; 2.5, 1.95 (too little better) and 2 were not";
  EXPECT_THAT(result.stop_reason,
              AllOf(HasSubstr("score"), HasSubstr("improved on 2 (global step 2) for 3 evaluations")));
}

TEST_F(BuiltInHooks, EarlyStoppingCountsOnAfterAResume) {
  auto s = scored({1, 2, 3, 4, 5, 6, 7, 8});
  s.hooks.push_back(early_stopping_hook({.metric = "score", .patience = 4}));
  s.max_number_of_steps = 3;
  run_or_throw(s);
  s.max_number_of_steps = 8;
  s.hooks.back() = early_stopping_hook({.metric = "score", .patience = 4});
  EXPECT_EQ(run_or_throw(s).global_step, 5);
}

// One of a hook that evaluates in its after_create_session.
TEST_F(BuiltInHooks, AnEvaluationBeforeItsTurnCountsOnceAndInTheRightDirection) {
  auto s = scored({1, 2, 3, 3, 3, 3, 3, 3});
  s.model_fn = [model_fn = s.model_fn](const Inputs& in, ModeKeys mode) {
    ModelSpec model = model_fn(in, mode);
    model.directions = {{"score", metrics::Direction::kLargerIsBetter}};
    return model;
  };
  auto evaluating = std::make_shared<CallbackHook>();
  evaluating->on_create = [](Session& session) { session.evaluate(); };
  s.hooks.insert(s.hooks.begin(), evaluating);
  for (const int64_t last : {4, 8}) {
    s.hooks.push_back(early_stopping_hook({.metric = "score", .patience = 3}));
    s.max_number_of_steps = last;
    const RunResult result = run_or_throw(s);
    s.hooks.pop_back();
    if (last == 8) {
      EXPECT_EQ(result.global_step, 6);
      EXPECT_THAT(result.stop_reason, HasSubstr("not improved on 3 (global step 3) for 3 evaluations"));
    }
  }
}

// A program that runs several trainings, one after another, with the same hooks.
TEST_F(BuiltInHooks, EarlyStoppingBeginsAnewInAnotherRun) {
  const auto hook = early_stopping_hook({.metric = "score", .patience = 2});
  auto s = scored({1, 2, 3});
  s.hooks.push_back(hook);
  EXPECT_EQ(run_or_throw(s).global_step, 3);
  s = scored({5, 4, 4, 4});
  s.log_dir = fresh_directory("another_training");
  s.hooks.push_back(hook);
  EXPECT_EQ(run_or_throw(s).global_step, 4);
}

TEST_F(BuiltInHooks, TheLastEvaluationIsMadeInEveryRun) {
  const auto hook = evaluation_hook(0);
  for (const char* name : {"first_training", "second_training"}) {
    auto s = scored({1, 2, 3});
    s.log_dir = fresh_directory(name);
    s.max_number_of_steps = 2;
    s.hooks.push_back(hook);
    ::testing::internal::CaptureStdout();
    run_or_throw(s);
    EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("evaluation at global step 2:")) << name;
  }
}

TEST_F(BuiltInHooks, EarlyStoppingMayLookForLargerValues) {
  auto s = scored({1, 2, 3, 3, 3});
  s.hooks.push_back(early_stopping_hook({.metric = "score", .larger_is_better = true, .patience = 2}));
  EXPECT_EQ(run_or_throw(s).global_step, 5);
}

TEST_F(BuiltInHooks, AMetricThatIsNoNumberIsNeverTheBest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto s = scored({nan, 2, 1, 1, 1});
  s.hooks.push_back(early_stopping_hook({.metric = "score", .patience = 2}));
  EXPECT_EQ(run_or_throw(s).global_step, 5);
  s = scored({nan, nan, nan});
  s.log_dir = fresh_directory("nan_metric");
  s.hooks.push_back(early_stopping_hook({.metric = "score", .patience = 3}));
  s.max_number_of_steps = 2;
  run_or_throw(s);
  s.max_number_of_steps = 8;
  const RunResult resumed = run_or_throw(s);
  EXPECT_EQ(resumed.global_step, 3);
  EXPECT_THAT(resumed.stop_reason, HasSubstr("score has not been a finite number for 3 evaluations"));
}

TEST_F(BuiltInHooks, AMonitorRefusesWhatItCannotUse) {
  EXPECT_THROW(early_stopping_hook({.patience = 0}), InvalidArgument);
  EXPECT_THROW(early_stopping_hook({.min_change = -1}), InvalidArgument);
  EXPECT_THROW(early_stopping_hook({.min_change = std::nan("")}), InvalidArgument);
  EXPECT_THROW(plateau_learning_rate_hook({}, 1.0), InvalidArgument);
  EXPECT_THROW(plateau_learning_rate_hook({}, 0.0), InvalidArgument);
  EXPECT_THROW(plateau_learning_rate_hook({}, 0.5, -1), InvalidArgument);
  for (const char* state : {"", "{}", "{\"waited\":\"x\"}", "[1]", "{\"waited\":1,\"best\":null}",
                            "{\"waited\":-1}", "{\"waited\":0.5}", "{\"waited\":9223372036854775807}",
                            "{\"waited\":1,\"best\":1,\"best_step\":1e30}"})
    EXPECT_THROW(early_stopping_hook({})->restore_state(state), DataError) << state;
  auto s = scored({1});
  s.hooks.push_back(early_stopping_hook({.metric = "accuracy"}));
  EXPECT_THAT(message_of_run<ConfigError>(s), AllOf(HasSubstr("'accuracy'"), HasSubstr("loss, mean, score")));
}

TEST_F(BuiltInHooks, PlateauLowersTheRateDownToItsEnd) {
  auto s = scored({1});
  std::vector<double> rates;
  s.hooks.push_back(plateau_learning_rate_hook({.metric = "score", .patience = 2}, 0.5, 0.2));
  s.hooks.push_back(before_run_hook([&](Session& session) { rates.push_back(session.learning_rate()); }));
  run_or_throw(s);
  EXPECT_THAT(rates, ElementsAre(1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.2));
  EXPECT_FLOAT_EQ(static_cast<float>(saved("w").item()), -(3 + 1 + 0.5f + 0.2f));
}

TEST_F(BuiltInHooks, PlateauGoesOnAfterAResume) {
  std::vector<double> rates;
  auto s = scored({1});
  s.hooks.push_back(nullptr);
  s.hooks.push_back(before_run_hook([&](Session& session) { rates.push_back(session.learning_rate()); }));
  for (int64_t last : {2, 4, 8}) {
    s.hooks[1] = plateau_learning_rate_hook({.metric = "score", .patience = 2}, 0.5, 0.2);
    s.max_number_of_steps = last;
    run_or_throw(s);
  }
  EXPECT_THAT(rates, ElementsAre(1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.2));
}

TEST_F(BuiltInHooks, OutputFnGetsTheStepsOfATraining) {
  auto s = spec();
  s.max_number_of_steps = 5;
  s.output_every_n_steps = 2;
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto model = constant_slope_model(in, mode);
    model.output_info = {{"x", in[0] + 0.0f}};
    return model;
  };
  std::vector<size_t> calls;
  std::vector<float> values;
  s.output_fn = [&](std::span<const OutputBatch> batches) {
    calls.push_back(batches.size());
    for (const OutputBatch& batch : batches) {
      EXPECT_EQ(batch.at(0).first, "x");
      for (float value : batch.at(0).second.values<float>()) values.push_back(value);
    }
  };
  run_or_throw(s);
  EXPECT_THAT(calls, ElementsAre(2, 2, 1));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

}  // namespace
}  // namespace mox
