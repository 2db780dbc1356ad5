// The best evaluated state: kept, named, restored, and what follows evaluations from a YAML.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/engine/session/predictor.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// w is minus the number of steps; the error is smallest, 0, after `best` of them.
ModelFn best_at(float best) {
  return [best](const Inputs& in, ModeKeys) {
    const Tensor w = get_variable("w", {}, zeros());
    return ModelSpec{.loss = w + reduce_sum(in[0]) * 0.0f,
                     .log_info = {{"loss", w + 0.0f}, {"error", abs(w + best)}},
                     .output_info = {{"w", in[0] * 0.0f + w}}};
  };
}

class KeepBest : public SmallRun {
 protected:
  RunSpec best_spec() {
    auto s = spec();
    s.model_fn = best_at(40);
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_steps = 10;
    s.save_model_steps = 10;
    s.max_number_of_steps = 200;
    s.keep_best = {{.metric = "error", .restore = true}};
    return s;
  }
  static float w_of(const Checkpoint& checkpoint) {
    return checkpoint.variables.at(0).value.values<float>()[0];
  }
  static double number(const Metrics& metrics, const std::string& name) {
    for (const auto& [known, value] : metrics)
      if (known == name) return value;
    return std::nan("");
  }
  Checkpoint best(std::string* path = nullptr) { return load_checkpoint(best_directory(log_dir_), path); }
};

TEST_F(KeepBest, ARunEndsWithTheStateOfItsBestEvaluation) {
  auto s = best_spec();
  float w_at_end = 0;
  auto hook = std::make_shared<CallbackHook>();  // a hook of the program ends after the framework's
  hook->on_end = [&](Session& session) { w_at_end = session.variable("w").values<float>()[0]; };
  s.hooks = {hook};
  ::testing::internal::CaptureStdout();
  const RunResult result = run_or_throw(s);
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(w_at_end, -40);
  EXPECT_EQ(result.global_step, 200);
  EXPECT_EQ(number(result.evaluation, "error"), 0);
  EXPECT_THAT(output,
              AllOf(HasSubstr("best error: 0 at global step 40, kept in '" + log_dir_ + "/best'"),
                    HasSubstr("the state of global step 40 is restored"), HasSubstr("test error: 0.0000\n")));
  // Beside it, the last five, to go on from.
  EXPECT_EQ(list_checkpoints(log_dir_).size(), 5u);
  EXPECT_EQ(w_of(load_checkpoint(log_dir_)), -200);
  EXPECT_EQ(best().global_step, 40);
  EXPECT_EQ(w_of(best()), -40);
  EXPECT_EQ(list_checkpoints(best_directory(log_dir_)).size(), 1u);
}

// Not after the first evaluation, when the steps before it are lost.
TEST_F(KeepBest, AMetricThatNoEvaluationGivesIsRefusedBeforeTheFirstStep) {
  int steps = 0;
  auto s = best_spec();
  s.hooks = {before_run_hook([&](Session&) { ++steps; })};
  s.keep_best = {{.metric = "accuracy"}};
  EXPECT_THAT(message_of_run<ConfigError>(s),
              HasSubstr("keep_best.metric is 'accuracy', which no evaluation gives; model_fn's log_info and "
                        "metrics are loss, error"));
  // The hooks of a program, too.
  s.keep_best = {};
  for (const auto& hook : {keep_best_hook({.metric = "accuracy"}),
                           early_stopping_hook({.metric = "accuracy", .larger_is_better = true}),
                           plateau_learning_rate_hook({.metric = "accuracy", .larger_is_better = true})}) {
    s.hooks = {before_run_hook([&](Session&) { ++steps; }), hook};
    EXPECT_THAT(message_of_run<ConfigError>(s),
                HasSubstr("follows 'accuracy', which no evaluation gives; model_fn's log_info and metrics "
                          "are loss, error"))
        << hook->name();
    EXPECT_EQ(run(s), 2);
  }
  EXPECT_EQ(steps, 0);
}

// Such as how a table is read, without which a prediction from that state would be refused.
TEST_F(KeepBest, TheBestStateHasWhatTheHooksKeep) {
  class Keeper : public TrainingHook {
    std::string name() const override { return "keeper"; }
    std::string save_state() const override { return "of the table"; }
    void restore_state(const std::string&) override {}
  };
  auto s = best_spec();
  s.max_number_of_steps = 20;
  s.hooks = {std::make_shared<Keeper>()};
  run_or_throw(s);
  EXPECT_THAT(best().state.at("hooks"), HasSubstr(R"("keeper":"of the table")"));
}

TEST_F(KeepBest, AMetricThatIsNeverFiniteIsSaid) {
  auto s = best_spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = best_at(40)(in, mode);
    model.log_info[1].second = log(model.log_info[1].second * 0.0f - 1.0f);
    return model;
  };
  s.max_number_of_steps = 20;
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
  testing::internal::CaptureStderr();
  run_or_throw(s);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      HasSubstr("keep_best: error was no finite number in any of 2 evaluations: no state is kept, and "
                "the last one stays"));
}

// As a program has it that computes the area under a curve of each batch.
TEST_F(KeepBest, AMeanOfBatchesIsFollowedWithAWarning) {
  auto s = best_spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = best_at(40)(in, mode);
    const Tensor error = model.log_info[1].second;
    model.log_info[1] = {"rmse", sqrt(square(error) * reduce_max(in[0] * 0.0f + 1.0f))};
    return model;
  };
  s.keep_best = {{.metric = "rmse", .restore = true}};
  const auto warnings_of = [&](int64_t last_step) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    const RunResult result = run_or_throw(s);
    EXPECT_EQ(result.global_step, last_step);
    EXPECT_EQ(number(result.evaluation, "rmse (mean of batches)"), 0);
    return testing::internal::GetCapturedStderr();
  };
  const auto about_it = AllOf(HasSubstr("follows 'rmse' of log_info"),
                              HasSubstr("depends on eval_batch_size"), HasSubstr("ModelSpec::metrics"));
  s.early_stopping = {{.metric = "rmse", .patience = 3}};
  s.plateau = {{.monitor = {.metric = "rmse", .patience = 2}}};
  const std::string text = warnings_of(70);
  EXPECT_THAT(text, about_it);
  EXPECT_EQ(text.find("'rmse' of log_info"), text.rfind("'rmse' of log_info")) << "once: " << text;
  EXPECT_EQ(best().global_step, 40);
  EXPECT_EQ(best_mark_of(best())->metric, "rmse");
  // A hook of the program alone.
  s.log_dir = fresh_directory("its_own_hook");
  s.plateau = {};
  s.early_stopping = {};
  s.hooks = {early_stopping_hook({.metric = "rmse", .patience = 3})};
  EXPECT_THAT(warnings_of(70), about_it);
  // Its name in evaluations says what it is.
  s.log_dir = fresh_directory("its_whole_name");
  s.keep_best->metric = "rmse (mean of batches)";
  s.hooks = {};
  EXPECT_EQ(warnings_of(200), "");
}

TEST_F(KeepBest, EvaluationAndPredictionTakeIt) {
  auto s = best_spec();
  run_or_throw(s);
  auto eval = s;
  eval.run_mode = ModeKeys::EVAL;
  const RunResult result = run_or_throw(eval);
  EXPECT_EQ(result.global_step, 40);
  EXPECT_EQ(number(result.evaluation, "error"), 0);
  auto predict = s;
  predict.run_mode = ModeKeys::PREDICT;
  predict.predictions = log_dir_ + "/answers.csv";
  EXPECT_EQ(run_or_throw(predict).global_step, 40);
  EXPECT_THAT(read_file(*predict.predictions), HasSubstr("0,-40"));
  const Predictor predictor(log_dir_, s.model_fn);
  EXPECT_EQ(predictor.global_step(), 40);
  // What is named is taken as it is.
  eval.checkpoint_path = log_dir_ + "/checkpoint-200";
  EXPECT_EQ(run_or_throw(eval).global_step, 200);
}

TEST_F(KeepBest, WithoutRestoreTheLastStateCounts) {
  auto s = best_spec();
  s.keep_best->restore = false;
  EXPECT_EQ(number(run_or_throw(s).evaluation, "error"), 160);
  EXPECT_EQ(best().global_step, 40);
  s.run_mode = ModeKeys::EVAL;
  EXPECT_EQ(run_or_throw(s).global_step, 200);
}

// A start that finds no better state may want another answer than the one that has kept it.
TEST_F(KeepBest, WhatTheLastStartSaysOfRestoringCounts) {
  for (const bool restores : {false, true, false}) {
    auto s = best_spec();
    s.keep_best->restore = restores;
    EXPECT_EQ(number(run_or_throw(s).evaluation, "error"), restores ? 0 : 160);
    s.run_mode = ModeKeys::EVAL;
    EXPECT_EQ(run_or_throw(s).global_step, restores ? 40 : 200);
    EXPECT_EQ(w_of(best()), -40);
    EXPECT_EQ(best_mark_of(best())->value, 0);
  }
}

TEST_F(KeepBest, ARunThatGoesOnKeepsWhatItHasFound) {
  auto s = best_spec();
  s.max_number_of_steps = 70;
  run_or_throw(s);
  s.max_number_of_steps = 100;
  s.model_fn = best_at(40);
  EXPECT_EQ(number(run_or_throw(s).evaluation, "error"), 0);
  EXPECT_EQ(best().global_step, 40);
  // A later one that is better takes its place.
  s.max_number_of_steps = 200;
  s.model_fn = best_at(150);
  run_or_throw(s);
  EXPECT_EQ(best().global_step, 40) << "0 was the error at step 40: nothing is better";
}

TEST_F(KeepBest, TheLastEvaluationCountsToo) {
  auto s = best_spec();
  s.max_number_of_steps = 35;
  s.eval_every_n_steps = 0;
  run_or_throw(s);
  EXPECT_EQ(best().global_step, 35);
}

// Of a hook of the program, which comes before the one that keeps it.
TEST_F(KeepBest, AnEvaluationBeforeTheFirstStepCountsToo) {
  auto s = best_spec();
  s.model_fn = best_at(0);
  s.max_number_of_steps = 20;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_create = [](Session& session) { session.evaluate(); };
  s.hooks = {hook};
  run_or_throw(s);
  EXPECT_EQ(best().global_step, 0);
}

TEST_F(KeepBest, AnEarlierStepMayTakeThePlaceOfALaterOne) {
  auto s = best_spec();
  s.model_fn = best_at(60);
  s.max_number_of_steps = 70;
  run_or_throw(s);
  EXPECT_EQ(best().global_step, 60);
  // The run goes on from step 20, as after a crash, and evaluates more often now.
  for (const CheckpointEntry& entry : list_checkpoints(log_dir_))
    if (entry.step > 30) std::filesystem::remove_all(entry.path);
  s.model_fn = best_at(36);
  s.eval_every_n_steps = 4;
  s.max_number_of_steps = 50;
  auto worse = best();
  worse.state["best"] = to_json({.metric = "error", .value = 1, .restore = true});
  save_checkpoint(best_directory(log_dir_), worse);
  run_or_throw(s);
  EXPECT_EQ(best().global_step, 36);
  EXPECT_EQ(list_checkpoints(best_directory(log_dir_)).size(), 1u);
}

TEST_F(KeepBest, OneOfALaterStepIsNamed) {
  auto s = best_spec();
  s.max_number_of_steps = 50;
  run_or_throw(s);
  s.max_number_of_steps = 60;
  const auto warnings_of_going_on = [&] {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warnings_of_going_on(), Not(HasSubstr("best state")));
  for (const CheckpointEntry& entry : list_checkpoints(log_dir_))
    if (entry.step > 30) std::filesystem::remove_all(entry.path);
  EXPECT_THAT(warnings_of_going_on(),
              HasSubstr("the best state of global step 40, and this run goes on from step 30"));
}

TEST_F(KeepBest, ThatOfAnotherRunIsNotTouched) {
  auto s = best_spec();
  s.max_number_of_steps = 50;
  run_or_throw(s);
  for (const CheckpointEntry& entry : list_checkpoints(log_dir_)) std::filesystem::remove_all(entry.path);
  EXPECT_THAT(message_of_run<FailedPrecondition>(s),
              AllOf(HasSubstr("the best state of another run"), HasSubstr(log_dir_ + "/best")));
}

// Whoever may write to the log_dir could have the checkpoints of another run deleted.
TEST_F(KeepBest, ALinkInItsPlaceIsNotFollowed) {
  const std::string others = fresh_directory("others"), link = best_directory(log_dir_);
  for (const int64_t step : {3, 7}) save_checkpoint(others, sample_checkpoint(step, 1));
  std::filesystem::create_directories(log_dir_);
  std::filesystem::create_directory_symlink(others, link);
  EXPECT_THAT(message_of_run<IoError>(best_spec()),
              AllOf(HasSubstr("'" + link + "' is a link"), HasSubstr("Remove it")));
  EXPECT_THAT(names_in(others), ElementsAre("checkpoint-3", "checkpoint-7"));
}

TEST_F(KeepBest, WithoutALogDirItIsKeptInMemory) {
  auto s = best_spec();
  s.log_dir = "";
  EXPECT_EQ(number(run_or_throw(s).evaluation, "error"), 0);
}

TEST_F(KeepBest, AWarmStartTakesTheBest) {
  auto s = best_spec();
  run_or_throw(s);
  auto next = spec();
  next.checkpoint_path = log_dir_;
  next.log_dir = fresh_directory("after_the_best");
  next.max_number_of_steps = 1;
  run_or_throw(next);
  EXPECT_EQ(w_of(load_checkpoint(*next.log_dir)), -41);
}

// A text within the text of a state: what is wrong with it is found by who reads it, who does not
// know the file.
TEST_F(KeepBest, AStateThatIsTooLargeNamesItsCheckpoint) {
  auto s = best_spec();
  s.max_number_of_steps = 20;
  s.hooks = {early_stopping_hook({.metric = "error", .patience = 9})};
  run_or_throw(s);
  std::string path;
  Checkpoint checkpoint = load_checkpoint(log_dir_, &path);
  std::string lists = "[";
  for (int i = 0; i < 100'000; ++i) lists += "[],";
  auto hooks = nlohmann::json::parse(checkpoint.state.at("hooks"));
  for (auto& [name, state] : hooks.items())
    if (name.starts_with("early_stopping")) state = lists + "[]]";
  checkpoint.state["hooks"] = hooks.dump();
  save_checkpoint(log_dir_, checkpoint);
  s.max_number_of_steps = 30;
  EXPECT_THAT(message_of_run<DataError>(s), AllOf(HasSubstr("'" + path + "'"), HasSubstr("early_stopping")));
  Checkpoint kept = best(&path);
  kept.state["best"] = lists + "[]]";
  EXPECT_THAT(message_of<DataError>([&] { best_mark_of(kept, path); }), HasSubstr("'" + path + "'"));
}

TEST_F(KeepBest, MistakesAreRefused) {
  auto s = best_spec();
  s.keep_best->metric = "accuracy";
  EXPECT_THAT(message_of_run<ConfigError>(s),
              AllOf(HasSubstr("keep_best.metric is 'accuracy'"), HasSubstr("loss, error")));
  EXPECT_EQ(run(s), 2);  // before the first step
  s = best_spec();
  s.inter_mode = {};
  EXPECT_THAT(message_of_run<ConfigError>(s), HasSubstr("keep_best follows 'error'"));
  Checkpoint damaged;
  damaged.state["best"] = "{\"metric\":1}";
  EXPECT_THROW(best_mark_of(damaged), DataError);
  EXPECT_THROW(keep_best_hook({}), InvalidArgument);
}

TEST_F(KeepBest, FromAConfiguration) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--log_level=error", "--keep_best.metric=loss", "--keep_best.mode=max",
       "--keep_best.restore", "--early_stopping.metric=error", "--early_stopping.patience=2",
       "--plateau.metric=error", "--plateau.patience=1", "--plateau.factor=0.5"});
  auto s = best_spec();
  s.keep_best.reset();
  double multiplier = 0;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_end = [&](Session& session) { multiplier = session.learning_rate_multiplier(); };
  s.hooks = {hook};
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(best().global_step, 10) << "the largest loss";
  EXPECT_EQ(result.global_step, 60);
  EXPECT_THAT(result.stop_reason,
              HasSubstr("error has not improved on 0 (global step 40) for 2 evaluations"));
  EXPECT_EQ(multiplier, 0.25);
}

TEST_F(KeepBest, AnOptionOfASectionThatIsOffIsRefused) {
  for (const char* flag : {"--keep_best.restore", "--early_stopping.patience=2",
                           "--early_stopping.patience=3", "--plateau.factor=0.5"}) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=error", flag});
    EXPECT_THAT(message_of_run<ConfigError>(spec()), HasSubstr(".metric is not: it would have no effect"))
        << flag;
  }
  // As a run writes it.
  const ScopedConfiguration written({"--threads=1", "--log_level=error", "--early_stopping.metric=",
                                     "--early_stopping.mode=auto", "--early_stopping.patience=3"});
  EXPECT_EQ(run_or_throw(spec()).global_step, 4);
}

}  // namespace
}  // namespace mox
