// What hooks may ask of a run at any point of a step, and what a run does with a model or data
// that cannot train.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/config/init.h"
#include "moxing/engine/session/run.h"
#include "moxing/hooks/hook.h"
#include "moxing/hooks/hooks.h"
#include "moxing/model/variables.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSessionSamples = 50;

std::vector<Array> samples() {
  Array x(DType::kFloat32, {kSessionSamples, 2}), y(DType::kFloat32, {kSessionSamples, 1});
  RandomStream(3, 4).fill_uniform(x.values<float>(), 0, -1, 1);
  for (size_t i = 0; i < kSessionSamples; ++i)
    y.values<float>()[i] = 2 * x.values<float>()[2 * i] - x.values<float>()[2 * i + 1];
  return {x, y};
}

ModelSpec plain_line_model(const Inputs& in, ModeKeys) {
  auto [x, y] = in.take<2>();
  auto loss = reduce_mean(square(matmul(x, get_variable("w", {2, 1}, zeros())) - y));
  return {.loss = loss, .log_info = {{"loss", loss}}};
}

// Calls a function in one of the places where a hook is called.
struct CallingHook : Hook {
  using Call = std::function<void(Session&)>;
  Call before = [](Session&) {}, after = [](Session&) {}, at_end = [](Session&) {};
  void before_run(Session& session) override { before(session); }
  void after_run(Session& session, const StepResult&) override { after(session); }
  void end(Session& session) override { at_end(session); }
};

class SessionTest : public ::testing::Test {
 protected:
  RunSpec spec() const { return momentum_run(samples(), plain_line_model, log_dir_); }
  // Throws at global step `step`, after the step.
  static std::shared_ptr<CallingHook> failing_after(int64_t step) {
    auto hook = std::make_shared<CallingHook>();
    hook->after = [step](Session& session) {
      if (session.global_step() == step) throw DataError("planted");
    };
    return hook;
  }

  ScopedConfiguration configuration_{std::vector<std::string>{"--threads=1", "--log_level=error"}};
  std::string log_dir_ = fresh_directory("session");
};

TEST_F(SessionTest, ASaveThatIsAskedForBeforeAStepHoldsTheRightDataPosition) {
  auto whole = spec();
  whole.log_dir = fresh_directory("session_whole");
  run_or_throw(whole);

  auto cut = spec();
  auto saver = std::make_shared<CallingHook>();
  saver->before = [](Session& session) {
    if (session.global_step() == 10) session.save_checkpoint();
  };
  cut.hooks = {saver, failing_after(15)};
  EXPECT_EQ(message_of_run<DataError>(cut), "planted");
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 11);
  EXPECT_EQ(run_or_throw(spec()).global_step, 30);
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(*whole.log_dir));
}

// Of 30 steps of 8 of the 50 samples, a checkpoint every fifth of them.
class KeptForGood : public SessionTest {
 protected:
  std::vector<int64_t> kept_with(const std::string& flag, std::shared_ptr<Hook> hook = nullptr) const {
    const ScopedConfiguration configuration(
        std::vector<std::string>{"--threads=1", "--log_level=error", "--keep_checkpoints=1", flag});
    RunSpec run_spec = spec();
    run_spec.save_model_steps = 5;
    if (hook) run_spec.hooks = {std::move(hook)};
    EXPECT_EQ(run(run_spec), 0);
    std::vector<int64_t> steps;
    for (const CheckpointEntry& entry : list_checkpoints(log_dir_)) steps.push_back(entry.step);
    return steps;
  }
};

TEST_F(KeptForGood, TheFirstCheckpointAfterSoManyPasses) {
  EXPECT_THAT(kept_with("--keep_checkpoint_every_n_epochs=2"), ::testing::ElementsAre(15, 25, 30));
}

TEST_F(KeptForGood, TheFirstCheckpointAfterSoManySeconds) {
  auto pause = std::make_shared<CallingHook>();
  pause->after = [](Session& session) {
    if (session.global_step() == 12) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  };
  EXPECT_THAT(kept_with("--keep_checkpoint_every_n_secs=1", pause), ::testing::Contains(15));
}

TEST_F(KeptForGood, NoneBeforeTheSecondsAreOver) {
  EXPECT_THAT(kept_with("--keep_checkpoint_every_n_secs=1000"), ::testing::ElementsAre(30));
}

TEST_F(SessionTest, ASaveHoldsWhatLaterHooksLearntFromTheStep) {
  struct Counter : Hook {
    std::string name() const override { return "counter"; }
    std::string save_state() const override { return std::to_string(steps); }
    void restore_state(const std::string& state) override { steps = std::stoi(state); }
    void after_run(Session&, const StepResult&) override { ++steps; }
    int steps = 0;
  };
  auto saver = std::make_shared<CallingHook>();
  saver->after = [](Session& session) { session.save_checkpoint(); };
  auto s = spec();
  s.hooks = {saver, std::make_shared<Counter>(), failing_after(7)};
  message_of_run<DataError>(s);
  const auto counter = std::make_shared<Counter>();
  s.hooks = {counter};
  run_or_throw(s);
  EXPECT_EQ(counter->steps, 30);
}

TEST_F(SessionTest, AHookCannotSaveAStepThatTheNanGuardRefuses) {
  auto saver = std::make_shared<CallingHook>();
  saver->after = [](Session& session) { session.save_checkpoint(); };
  auto s = spec();
  s.hooks = {saver};
  s.input_fn = [](ModeKeys) {
    auto data = samples();
    data[1].values<float>()[8 * 3] = NAN;  // in the fourth batch
    return Dataset::from_arrays(data);
  };
  message_of_run<NumericError>(s);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 3);
}

TEST_F(SessionTest, NothingIsSavedOnceTheRunHasFailed) {
  auto hook = failing_after(5);
  std::string refusal;
  hook->at_end = [&](Session& session) {
    try {
      session.save_checkpoint();
    } catch (const FailedPrecondition& error) {
      refusal = error.what();
    }
  };
  auto s = spec();
  s.hooks = {hook};
  message_of_run<DataError>(s);
  EXPECT_THAT(refusal, HasSubstr("nothing is saved after an error"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 0);
}

// The loss is finite, its gradient is not: sqrt at 0.
TEST_F(SessionTest, AVariableThatIsNotFiniteIsNeverSaved) {
  auto s = spec();
  s.model_fn = [](const Inputs&, ModeKeys) {
    auto loss = reduce_sum(sqrt(get_variable("root", {2}, zeros())));
    return ModelSpec{.loss = loss, .log_info = {{"loss", loss}}};
  };
  s.max_number_of_steps = 1;  // no second step whose loss the guard would see
  EXPECT_THAT(message_of_run<NumericError>(s),
              AllOf(HasSubstr("'root' is not finite after global step 1"), HasSubstr("untouched")));
  const Checkpoint saved = load_checkpoint(log_dir_);
  EXPECT_EQ(saved.global_step, 0);
  EXPECT_EQ(saved.variables[0].value.values<float>()[0], 0);
}

TEST_F(SessionTest, TrainingDataWithoutSamplesIsAnError) {
  auto s = spec();
  s.max_number_of_steps = std::nullopt;
  s.input_fn = [](ModeKeys) {
    return Dataset::from_arrays(samples()).filter([](const Element&) { return false; });
  };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("no samples"));
}

TEST_F(SessionTest, AMistakeInTheEvaluationModelShowsBeforeTheFirstStep) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    auto model = plain_line_model(in, mode);
    if (mode == ModeKeys::EVAL) model.log_info.clear();
    return model;
  };
  int steps = 0;
  auto hook = std::make_shared<CallingHook>();
  hook->after = [&](Session&) { ++steps; };
  s.hooks = {hook};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("empty log_info"));
  EXPECT_EQ(steps, 0);
}

TEST_F(SessionTest, ATensorOfAnEarlierGraphIsRefusedAndOneFromACollectionIsFound) {
  struct Fetching : Hook {
    explicit Fetching(std::optional<Tensor> kept) : kept(kept) {}
    void begin(ModelBuild& build) override {
      build.fetch("doubled", kept ? *kept : get_collection("doubled").at(0));
    }
    void after_run(Session&, const StepResult& result) override { sum += result.number("doubled"); }
    std::optional<Tensor> kept;
    double sum = 0;
  };
  auto with_hook = [&](bool keeps_tensor) {
    auto s = spec();
    s.input_fn = [](ModeKeys) { return Dataset::from_arrays(samples()); };  // the last batch has two samples
    s.model_fn = [keeps_tensor](const Inputs& in, ModeKeys mode) {
      auto model = plain_line_model(in, mode);
      const Tensor doubled = model.loss * 2.0f;
      add_to_collection("doubled", doubled);
      model.hooks = {std::make_shared<Fetching>(keeps_tensor ? std::optional(doubled) : std::nullopt)};
      return model;
    };
    return s;
  };
  EXPECT_THAT(message_of_run<InvalidArgument>(with_hook(true)),
              AllOf(HasSubstr("'doubled'"), HasSubstr("get_collection")));
  auto s = with_hook(false);
  s.log_dir = fresh_directory("session_collection");
  EXPECT_EQ(run_or_throw(s).global_step, 7);
}

TEST_F(SessionTest, VariablesThatAWarmStartDoesNotGiveAreNamed) {
  run_or_throw(spec());
  const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
  auto wider = spec();
  wider.checkpoint_path = log_dir_;
  wider.log_dir = fresh_directory("warm");
  wider.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = plain_line_model(in, mode);
    model.loss = model.loss + reduce_mean(square(get_variable("b", {2}, zeros())));
    return model;
  };
  testing::internal::CaptureStderr();
  run_or_throw(wider);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("1 of the model's 2 variables are from the checkpoint"),
                    HasSubstr("; 1 begin with their initial values: b (all names: '")));
  EXPECT_TRUE(std::filesystem::exists(wider.log_dir.value() + "/restored_variables.txt"));
}

// Anywhere: by std::thread, in a part of the framework or in the program.
TEST_F(SessionTest, AThreadThatTheSystemRefusesIsNamedWithWhatHelps) {
  auto s = spec();
  s.input_fn = [](ModeKeys) -> Dataset {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(s), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("error: the system has refused this process a thread"),
                    HasSubstr("pids.max), or set lower values of threads, num_devices and data_threads")));
  s.input_fn = [](ModeKeys) -> Dataset {
    throw std::system_error(std::make_error_code(std::errc::not_a_directory));
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(s), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("left the program's own code"));
}

TEST_F(SessionTest, AProfileThatCannotBeWrittenIsRefusedBeforeTheFirstStep) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--log_level=error", "--step_profile=" + log_dir_ + "/none/profile.json"});
  EXPECT_THAT(message_of_run<InvalidArgument>(spec()), HasSubstr("step_profile"));
  EXPECT_EQ(latest_checkpoint(log_dir_), std::nullopt);
}

TEST_F(SessionTest, AProfileReplacesNothingButAProfile) {
  const std::string data = log_dir_ + "/data.csv", profile = log_dir_ + "/profile.json";
  std::filesystem::create_directories(log_dir_);
  write_file_atomically(data, "1,2\n");
  const auto refused = [&](const std::string& path) {
    const ScopedConfiguration configuration(
        {"--threads=1", "--log_level=error", "--save_summary_steps=1", "--step_profile=" + path});
    return message_of_run<InvalidArgument>(spec());
  };
  EXPECT_THAT(refused(data), AllOf(HasSubstr(data), HasSubstr("no profile of steps"),
                                   HasSubstr("name a file that is not there yet")));
  EXPECT_EQ(read_file(data), "1,2\n");
  EXPECT_THAT(refused(log_dir_), HasSubstr("no profile of steps"));
  EXPECT_THAT(refused("/dev/null"), HasSubstr("no profile of steps"));
  EXPECT_EQ(latest_checkpoint(log_dir_), std::nullopt) << "refused before the first step";
  // A file that the run itself has made since it began.
  EXPECT_THAT(refused(log_dir_ + "/metrics.jsonl"), HasSubstr("no profile of steps"));
  EXPECT_THAT(read_file(log_dir_ + "/metrics.jsonl"), HasSubstr("\"step\""));
  write_file_atomically(profile, "");
  for (const char* run : {"over nothing", "over a profile"}) {
    const ScopedConfiguration configuration(
        {"--threads=1", "--log_level=error", "--step_profile=" + profile});
    auto s = spec();
    s.log_dir = fresh_directory("profiled");
    s.max_number_of_steps = 7;
    EXPECT_EQ(run_or_throw(s).global_step, 7) << run;
    EXPECT_THAT(read_file(profile), HasSubstr("compute_s")) << run;
  }
}

TEST_F(SessionTest, AProfileThatCannotBeMadeTakesNothingFromTheRun) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--log_level=error", "--step_profile=" + log_dir_ + "/profile.json"});
  auto s = spec();
  s.max_number_of_steps = 3;
  testing::internal::CaptureStdout();
  EXPECT_THAT(message_of_run<FailedPrecondition>(s), HasSubstr("at least 5 steps"));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("stopped because step 3 was reached"));
}

TEST_F(SessionTest, ARunThatWasStoppedEarlyStaysStoppedUntilItGetsMorePatience) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.eval_every_n_steps = 2;
  s.optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0});
  auto with_patience = [&](int64_t patience) {
    s.hooks = {early_stopping_hook({.metric = "loss", .patience = patience})};
    return run_or_throw(s);
  };
  EXPECT_EQ(with_patience(3).global_step, 8);  // evaluated at 2 (the best), 4, 6, 8
  const RunResult again = with_patience(3);
  EXPECT_EQ(again.global_step, 8);
  EXPECT_THAT(again.stop_reason, HasSubstr("has not improved"));
  EXPECT_EQ(with_patience(5).global_step, 12);
}

TEST_F(SessionTest, WhateverIsThrownEndsTheRunInGoodOrder) {
  auto first = std::make_shared<CallingHook>(), second = std::make_shared<CallingHook>();
  bool first_ended = false;
  first->at_end = [&](Session&) { first_ended = true; };
  second->at_end = [](Session&) { throw 7; };
  auto s = spec();
  s.hooks = {first, second};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(s), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no std::exception"));
  EXPECT_TRUE(first_ended);
}

}  // namespace
}  // namespace mox
