// The life cycle of hooks: which calls come when, and what they may do.
#include "moxing/hooks/hooks.h"

#include <gmock/gmock-more-matchers.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Writes every call into a list that all hooks share; throws in the call that it is told.
class RecordingHook : public Hook {
 public:
  RecordingHook(std::string label, std::vector<std::string>* calls, std::string throw_in = "")
      : label_(std::move(label)), calls_(calls), throw_in_(std::move(throw_in)) {}
  void begin(ModelBuild&) override { record("begin"); }
  void after_create_session(Session&) override { record("create"); }
  void before_run(Session&) override { record("before"); }
  void after_run(Session&, const StepResult&) override { record("after"); }
  void after_evaluation(Session&, const Metrics&) override { record("evaluation"); }
  void end(Session& session) override { record(session.failed() ? "end(failed)" : "end"); }

 private:
  void record(const std::string& call) {
    calls_->push_back(label_ + "." + call);
    if (call == throw_in_) throw DataError("thrown in " + label_ + "." + call);
  }
  std::string label_;
  std::vector<std::string>* calls_;
  std::string throw_in_;
};

class HookOrder : public SmallRun {
 protected:
  std::shared_ptr<Hook> recording(const std::string& label, const std::string& throw_in = "") {
    return std::make_shared<RecordingHook>(label, &calls_, throw_in);
  }
  // "m" is a hook of the model, "a" and "b" are hooks of the run.
  RunSpec recorded(const std::string& a_throws_in = "", const std::string& b_throws_in = "") {
    auto s = spec();
    s.max_number_of_steps = 2;
    s.model_fn = [hook = recording("m")](const Inputs& in, ModeKeys mode) {
      auto model = constant_slope_model(in, mode);
      model.hooks = {hook};
      return model;
    };
    s.hooks = {recording("a", a_throws_in), recording("b", b_throws_in)};
    return s;
  }
  std::vector<std::string> calls_;
};

TEST_F(HookOrder, IsThatOfThePseudoCode) {
  run_or_throw(recorded());
  EXPECT_THAT(calls_, ElementsAre("m.begin", "a.begin", "b.begin",     //
                                  "m.create", "a.create", "b.create",  //
                                  "m.before", "a.before", "b.before", "m.after", "a.after", "b.after",
                                  "m.before", "a.before", "b.before", "m.after", "a.after", "b.after",
                                  "b.end", "a.end", "m.end"));
}

TEST_F(HookOrder, EvaluationsAreToldToAll) {
  auto s = recorded();
  s.max_number_of_steps = 1;
  s.inter_mode = ModeKeys::EVAL;
  run_or_throw(s);
  EXPECT_THAT(calls_,
              ElementsAre("m.begin", "a.begin", "b.begin", "m.create", "a.create", "b.create", "m.before",
                          "a.before", "b.before", "m.after", "a.after", "b.after", "m.evaluation",
                          "a.evaluation", "b.evaluation",  // the engine's hook ends first
                          "b.end", "a.end", "m.end"));
}

TEST_F(HookOrder, BeginIsCalledForEachGraph) {
  auto s = recorded();
  s.input_fn = [](ModeKeys) { return counting_data(3); };  // batches of two and of one
  run_or_throw(s);
  EXPECT_EQ(std::ranges::count(calls_, "m.begin"), 2);
  EXPECT_EQ(std::ranges::count(calls_, "b.begin"), 2);
  EXPECT_EQ(std::ranges::count(calls_, "m.create"), 1);
}

TEST_F(HookOrder, AnErrorInBeginEndsNobody) {
  EXPECT_THAT(message_of_run<DataError>(recorded("begin")), HasSubstr("a.begin"));
  EXPECT_THAT(calls_, ElementsAre("m.begin", "a.begin"));
}

TEST_F(HookOrder, AnErrorInAfterCreateSessionEndsThoseThatWereEntered) {
  EXPECT_THAT(message_of_run<DataError>(recorded("create")), HasSubstr("a.create"));
  EXPECT_THAT(calls_, ElementsAre("m.begin", "a.begin", "b.begin", "m.create", "a.create", "a.end(failed)",
                                  "m.end(failed)"));
}

TEST_F(HookOrder, AnErrorInBeforeRunEndsAll) {
  EXPECT_THAT(message_of_run<DataError>(recorded("before")), HasSubstr("a.before"));
  EXPECT_THAT(calls_, ElementsAre("m.begin", "a.begin", "b.begin", "m.create", "a.create", "b.create",
                                  "m.before", "a.before", "b.end(failed)", "a.end(failed)", "m.end(failed)"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 0) << "a failed run saves nothing at its end";
}

TEST_F(HookOrder, AnErrorInAfterRunEndsAll) {
  EXPECT_THAT(message_of_run<DataError>(recorded("after")), HasSubstr("a.after"));
  EXPECT_THAT(std::vector(calls_.end() - 3, calls_.end()),
              ElementsAre("b.end(failed)", "a.end(failed)", "m.end(failed)"));
}

TEST_F(HookOrder, AnErrorInAnEvaluationEndsAll) {
  auto s = recorded("evaluation");
  s.inter_mode = ModeKeys::EVAL;
  s.eval_every_n_steps = 1;
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("a.evaluation"));
  EXPECT_THAT(std::vector(calls_.end() - 3, calls_.end()),
              ElementsAre("b.end(failed)", "a.end(failed)", "m.end(failed)"));
}

TEST_F(HookOrder, AnErrorOfTheStepEndsAll) {
  auto s = recorded();
  s.input_fn = [](ModeKeys) {
    return counting_data(10).map([](const Element& element) {
      if (element[0].item() == 3) throw DataError("bad sample");
      return element;
    });
  };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("bad sample"));
  EXPECT_THAT(std::vector(calls_.end() - 3, calls_.end()),
              ElementsAre("b.end(failed)", "a.end(failed)", "m.end(failed)"));
}

TEST_F(HookOrder, AnErrorInEndIsTheRunsErrorAndTheOthersStillEnd) {
  EXPECT_THAT(message_of_run<DataError>(recorded("", "end")), HasSubstr("b.end"));
  EXPECT_THAT(std::vector(calls_.end() - 3, calls_.end()),
              ElementsAre("b.end", "a.end(failed)", "m.end(failed)"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 2) << "the checkpoint hook ended before it";
}

TEST_F(HookOrder, AnErrorInEndAfterAnotherIsLoggedAndTheFirstReported) {
  ::testing::internal::CaptureStderr();
  const std::string message = message_of_run<DataError>(recorded("after", "end(failed)"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("thrown in b.end(failed)"));
  EXPECT_THAT(message, HasSubstr("a.after"));
  EXPECT_THAT(std::vector(calls_.end() - 3, calls_.end()),
              ElementsAre("b.end(failed)", "a.end(failed)", "m.end(failed)"));
}

// What is thrown need not be an exception class.
TEST_F(HookOrder, AnythingMayBeThrown) {
  auto s = recorded();
  auto thrower = std::make_shared<CallbackHook>();
  thrower->on_end = [](Session&) { throw 42; };
  s.hooks.push_back(thrower);
  EXPECT_THROW(run_or_throw(s), int);
  EXPECT_THAT(std::vector(calls_.end() - 3, calls_.end()),
              ElementsAre("b.end(failed)", "a.end(failed)", "m.end(failed)"));
  s.log_dir = fresh_directory("hook_order_again");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(s), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("error: "));
}

class HookTest : public SmallRun {};

// A hook of one's own, in ten lines.
class SlowStart : public Hook {
 public:
  explicit SlowStart(int64_t steps) : steps_(steps) {}
  void before_run(Session& session) override {
    session.set_learning_rate_multiplier(
        std::min(1.0, static_cast<double>(session.global_step() + 1) / static_cast<double>(steps_)));
  }

 private:
  int64_t steps_;
};

TEST_F(HookTest, OneOfOnesOwnChangesTheLearningRate) {
  auto s = spec();
  std::vector<double> rates;
  s.hooks = {std::make_shared<SlowStart>(4),
             before_run_hook([&](Session& session) { rates.push_back(session.learning_rate()); })};
  run_or_throw(s);
  EXPECT_THAT(rates, ElementsAre(0.25, 0.5, 0.75, 1.0));
  EXPECT_FLOAT_EQ(static_cast<float>(saved("w").item()), -2.5f)
      << "the rate set before a step is that step's";
}

TEST_F(HookTest, SeesTheRunAsItIs) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_begin = [](ModelBuild& build) { EXPECT_EQ(build.loss().shape(), Shape{}); };
  hook->on_create = [&](Session& session) {
    EXPECT_EQ(session.global_step(), 0);
    EXPECT_EQ(session.first_step(), 0);
    EXPECT_EQ(session.last_step(), 4);
    EXPECT_EQ(session.steps_per_epoch(), 5);
    EXPECT_EQ(session.samples(), 0);
    EXPECT_EQ(session.log_dir(), log_dir_);
    EXPECT_THAT(session.log_names(), ElementsAre("loss", "mean"));
    EXPECT_TRUE(session.can_evaluate());
    EXPECT_FALSE(session.failed());
  };
  hook->on_before = [](Session& session) { EXPECT_EQ(session.samples(), 2 * session.global_step()); };
  hook->on_after = [](Session& session, const StepResult& result) {
    EXPECT_EQ(session.samples(), 2 * session.global_step());
    EXPECT_EQ(result.samples(), 2);
    EXPECT_EQ(result.number("trained_loss"), result.number("loss"));
    EXPECT_EQ(result.number("mean"), 2 * static_cast<double>(session.global_step() - 1) + 0.5);
    try {
      result.array("accuracy");
      ADD_FAILURE();
    } catch (const NotFound& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'accuracy'"), HasSubstr("trained_loss, loss, mean")));
    }
  };
  s.hooks = {hook};
  run_or_throw(s);
  s.max_number_of_steps = 6;
  hook->on_create = [](Session& session) { EXPECT_EQ(session.first_step(), 4); };
  hook->on_before = {};
  hook->on_after = [](Session& session, const StepResult&) {
    EXPECT_EQ(session.samples(), 2 * (session.global_step() - 4)) << "of this start";
  };
  run_or_throw(s);
}

TEST_F(HookTest, FetchesTensorsOfTheModel) {
  auto s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    add_to_collection("watched", in[0] * 10.0f);
    return constant_slope_model(in, mode);
  };
  std::vector<float> seen;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_begin = [](ModelBuild& build) {
    build.fetch("ten times", get_collection("watched").at(0));
    build.fetch("ten times", get_collection("watched").at(0));  // the same tensor again is no conflict
    EXPECT_THROW(build.fetch("loss", get_collection("watched").at(0)), InvalidArgument);
    EXPECT_THROW(build.fetch("nothing", Tensor()), InvalidArgument);
  };
  hook->on_after = [&](Session&, const StepResult& result) {
    for (float value : result.array("ten times").values<float>()) seen.push_back(value);
  };
  s.hooks = {hook};
  s.max_number_of_steps = 2;
  run_or_throw(s);
  EXPECT_THAT(seen, ElementsAre(0, 10, 20, 30));
}

TEST_F(HookTest, ATensorThatWasKeptFromAnotherGraphIsRefused) {
  auto s = spec();
  s.input_fn = [](ModeKeys) { return counting_data(3); };
  Tensor kept;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_begin = [&](ModelBuild& build) {
    if (!kept.defined()) kept = build.loss();
    build.fetch("kept", kept);
  };
  s.hooks = {hook};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), AllOf(HasSubstr("'kept'"), HasSubstr("another graph")));
}

TEST_F(HookTest, ReadsAndSetsVariables) {
  auto s = spec();
  std::vector<double> values;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_create = [](Session& session) { session.set_variable("w", Array::scalar(100.0f)); };
  hook->on_after = [&](Session& session, const StepResult&) {
    values.push_back(session.variable("w").item());
    session.variable("w").values<float>()[0] = 7;  // a copy
    if (session.global_step() == 2) session.set_variable("w", Array::scalar(50.0f));
    EXPECT_THROW(session.variable("v"), NotFound);
    EXPECT_THROW(session.set_variable("w", Array(DType::kFloat32, {2})), InvalidArgument);
    EXPECT_THROW(session.set_variable("w", Array::scalar(int64_t{1})), InvalidArgument);
    EXPECT_THROW(session.set_learning_rate_multiplier(-1), InvalidArgument);
    EXPECT_THROW(session.set_learning_rate_multiplier(std::nan("")), InvalidArgument);
    EXPECT_THROW(session.evaluate(), FailedPrecondition);
    EXPECT_FALSE(session.can_evaluate());
  };
  s.hooks = {hook};
  run_or_throw(s);
  EXPECT_THAT(values, ElementsAre(99, 98, 49, 48));
  EXPECT_EQ(load_checkpoint(log_dir_).variables.at(0).value.item(), 48);
}

TEST_F(HookTest, TheFirstReasonToStopIsReported) {
  auto s = spec();
  s.hooks = {after_run_hook([](Session& session, const StepResult&) {
    if (session.global_step() < 2) return;
    EXPECT_FALSE(session.stop_requested());
    session.request_stop("it is enough");
    session.request_stop("it is far too much");
    EXPECT_TRUE(session.stop_requested());
  })};
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(result.global_step, 2);
  EXPECT_EQ(result.stop_reason, "it is enough");
}

TEST_F(HookTest, AStopBeforeTheFirstStepTrainsNothing) {
  auto s = spec();
  auto hook = std::make_shared<CallbackHook>();
  hook->on_create = [](Session& session) { session.request_stop("not today"); };
  s.hooks = {hook};
  EXPECT_EQ(run_or_throw(s).global_step, 0);
}

class CountingHook : public Hook {
 public:
  explicit CountingHook(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void after_run(Session&, const StepResult&) override { ++count; }
  std::string save_state() const override { return std::to_string(count); }
  void restore_state(const std::string& state) override { count = std::stoi(state); }
  int count = 0;

 private:
  std::string name_;
};

TEST_F(HookTest, StatesGoOnWithTheRun) {
  auto s = spec();
  s.hooks = {std::make_shared<CountingHook>("counter"), std::make_shared<CountingHook>("other")};
  run_or_throw(s);
  auto again = std::make_shared<CountingHook>("counter"), fresh = std::make_shared<CountingHook>("fresh");
  s.hooks = {again, fresh};
  s.max_number_of_steps = 6;
  run_or_throw(s);
  EXPECT_EQ(again->count, 6);
  EXPECT_EQ(fresh->count, 2);
}

TEST_F(HookTest, TwoOfOneNameAndNullAreRefused) {
  auto s = spec();
  s.hooks = {std::make_shared<CountingHook>("counter"), std::make_shared<CountingHook>("counter")};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("'counter'"));
  s.hooks = {early_stopping_hook({}), early_stopping_hook({.metric = "mean"}), nullptr};
  EXPECT_THAT(message_of_run<InvalidArgument>(s), HasSubstr("null"));
}

TEST_F(HookTest, EvaluateMayBeCalledByAHook) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.max_number_of_steps = 2;
  std::vector<double> means, told;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_after = [&](Session& session, const StepResult&) {
    means.push_back(session.evaluate().at(1).second);
  };
  hook->on_evaluation = [&](Session&, const Metrics& metrics) { told.push_back(metrics.at(0).second); };
  s.hooks = {hook};
  run_or_throw(s);
  EXPECT_THAT(means, ElementsAre(1.5, 1.5)) << "of 0, 1, 2, 3";
  EXPECT_THAT(told, ElementsAre(-1, -2, -2)) << "w after one step, after two, and once more at the end";
}

TEST_F(HookTest, EvaluatingInAfterEvaluationIsRefusedInsteadOfNeverEnding) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  auto hook = std::make_shared<CallbackHook>();
  hook->on_evaluation = [](Session& session, const Metrics&) { session.evaluate(); };
  s.hooks = {hook};
  EXPECT_THAT(message_of_run<FailedPrecondition>(s), HasSubstr("after_evaluation"));
}

}  // namespace
}  // namespace mox
