#include "moxing/console/stop_signal.h"

#include <gmock/gmock-more-matchers.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::HasSubstr;

volatile sig_atomic_t own_handler_calls = 0;
extern "C" void own_handler(int) { own_handler_calls = own_handler_calls + 1; }

class StopSignalTest : public SmallRun {
 protected:
  StopSignalTest() : previous_(signal(SIGTERM, own_handler)) { own_handler_calls = 0; }
  ~StopSignalTest() override { signal(SIGTERM, previous_); }
  void (*previous_)(int);
};

TEST_F(StopSignalTest, IsRememberedAndTheOldHandlerComesBack) {
  {
    const internal::StopSignal stop;
    EXPECT_EQ(stop.received(), 0);
    raise(SIGTERM);
    EXPECT_EQ(stop.received(), SIGTERM);
    EXPECT_EQ(own_handler_calls, 0);
  }
  raise(SIGTERM);
  EXPECT_EQ(own_handler_calls, 1);
  for (const int signal : {SIGINT, SIGUSR1}) {
    const internal::StopSignal stop;
    raise(signal);
    EXPECT_EQ(stop.received(), signal);
    EXPECT_EQ(stop.name(), signal == SIGINT ? "SIGINT" : "SIGUSR1");
  }
  // Launchers repeat these: the second one does not end a process that is saving.
  for (const int signal : {SIGHUP, SIGUSR1}) {
    const internal::StopSignal stop;
    raise(signal);
    raise(signal);
    EXPECT_EQ(stop.received(), signal);
  }
  const internal::StopSignal next;
  EXPECT_EQ(next.received(), 0) << "a signal counts for the run that it came in";
}

TEST_F(StopSignalTest, AnInterruptMayEndTheProcessAgain) {
  const auto before = signal(SIGINT, own_handler);
  {
    const internal::StopSignal stop;
    stop.let_interrupts_end();
    raise(SIGINT);
    EXPECT_EQ(own_handler_calls, 1);
    EXPECT_EQ(stop.received(), 0);
    raise(SIGTERM);
    EXPECT_EQ(stop.received(), SIGTERM);
  }
  EXPECT_EQ(signal(SIGINT, before), own_handler);
}

// nohup
TEST_F(StopSignalTest, AHangUpThatIsIgnoredStaysSo) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    const internal::StopSignal stop;
    raise(SIGHUP);
    EXPECT_EQ(stop.received(), 0);
  }
  EXPECT_EQ(signal(SIGHUP, before), SIG_IGN);
}

// Of a job whose rank 0 still saves: the end of this process would end that one, too.
TEST_F(StopSignalTest, WhatIsRepeatedDoesNothingAfterTheRunOfOneOfSeveralProcesses) {
  for (const int each : {SIGHUP, SIGUSR1}) {
    const auto before = signal(each, SIG_DFL);
    for (int run = 0; run < 2; ++run) {
      const internal::StopSignal stop(true);
      EXPECT_EQ(stop.received(), 0);
      raise(each);
      EXPECT_EQ(stop.received(), each) << "run " << run;
    }
    raise(each);
    raise(each);
    signal(each, before);
  }
  // A handler of the program's own comes back, and mpirun kills with SIGTERM.
  const auto before = signal(SIGUSR1, own_handler);
  { const internal::StopSignal stop(true); }
  raise(SIGUSR1);
  raise(SIGTERM);
  EXPECT_EQ(own_handler_calls, 2);
  signal(SIGUSR1, before);
  signal(SIGHUP, SIG_DFL);
}

TEST_F(StopSignalTest, EndsARunAfterItsStepAndSaves) {
  auto s = spec();
  s.hooks = {after_run_hook([](Session& session, const StepResult&) {
    if (session.global_step() == 2) raise(SIGTERM);
  })};
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(result.global_step, 2);
  EXPECT_THAT(result.stop_reason, HasSubstr("SIGTERM"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 2);
  s.hooks = {};
  const RunResult rest = run_or_throw(s);
  EXPECT_EQ(rest.global_step, 4) << "goes on where it was stopped";
  EXPECT_FALSE(rest.interrupted);
}

TEST_F(StopSignalTest, InModelFnEndsARunBeforeItsFirstStep) {
  auto s = spec();
  const auto model_fn = s.model_fn;
  s.model_fn = [&](const auto&... given) {
    raise(SIGTERM);
    return model_fn(given...);
  };
  const RunResult result = run_or_throw(s);
  EXPECT_EQ(result.global_step, 0);
  EXPECT_TRUE(result.interrupted);
  EXPECT_THAT(result.stop_reason, HasSubstr("SIGTERM"));
  s.model_fn = model_fn;
  EXPECT_EQ(run_or_throw(s).global_step, 4);
}

// As one does that takes minutes.
TEST_F(StopSignalTest, EndsAModelFnThatIsStillAtItsNodes) {
  auto s = spec();
  run_or_throw(s);
  s.max_number_of_steps = 6;
  const auto model_fn = s.model_fn;
  bool ends = false;
  s.model_fn = [&](const auto&... given) {
    const ModelSpec model = model_fn(given...);
    raise(SIGTERM);
    const Tensor further = model.loss + 1.0f;
    ends = true;
    return ModelSpec{.loss = further};
  };
  testing::internal::CaptureStdout();
  const RunResult result = run_or_throw(s);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("SIGTERM ended this run before it trained"));
  EXPECT_EQ(result.global_step, 4);
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(ends);
  s.output_fn = [](std::span<const OutputBatch>) {};
  for (const ModeKeys mode : {ModeKeys::EVAL, ModeKeys::PREDICT}) {
    s.run_mode = mode;
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(s), kExitInterrupted);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("interrupted by SIGTERM after 0 samples"));
    EXPECT_FALSE(ends);
  }
  s.run_mode = ModeKeys::TRAIN;
  s.model_fn = model_fn;
  EXPECT_EQ(run_or_throw(s).global_step, 6);
}

TEST_F(StopSignalTest, EndsTheTrialOfDevices) {
  const ScopedConfiguration configuration({"--threads=2", "--num_devices=auto"});
  auto s = spec();
  s.model_fn = [&, model_fn = s.model_fn](const auto&... given) {
    ModelSpec model = model_fn(given...);
    raise(SIGTERM);
    return model;
  };
  const RunResult result = run_or_throw(s);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.global_step, 0);
}

// A filter that lets nothing more through.
TEST_F(StopSignalTest, EndsTheWaitingForDataAndSaves) {
  for (const char* threads : {"--data_threads=0", "--data_threads=2"}) {
    SCOPED_TRACE(threads);
    const ScopedConfiguration configuration({"--threads=1", threads});
    std::atomic<int> looks{0};
    std::atomic<bool> passes{false};
    auto s = spec();
    s.log_dir = log_dir_ + threads;
    s.input_fn = [&](ModeKeys) {
      return counting_data(100000)
          .filter([&](const Element& element) {
            if (passes || element[0].values<float>()[0] < 4) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (++looks == 300) raise(SIGTERM);
            return false;
          })
          .batch(1);
    };
    s.auto_batch = false;
    s.max_number_of_steps = 8;
    std::vector<double> taken;
    s.hooks = {
        after_run_hook([&](Session&, const StepResult& step) { taken.push_back(step.number("mean")); })};
    const RunResult result = run_or_throw(s);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.global_step, 4);
    EXPECT_EQ(load_checkpoint(*s.log_dir).global_step, 4);
    passes = true;
    EXPECT_EQ(run_or_throw(s).global_step, 8);
    EXPECT_EQ(taken, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST_F(StopSignalTest, EndsTheWaitingForDataOfAPass) {
  auto s = spec();
  run_or_throw(s);
  int looks = 0;
  s.input_fn = [&](ModeKeys) {
    return counting_data(100000).filter([&](const Element&) {
      if (++looks % 500 == 0) raise(SIGTERM);
      return false;
    });
  };
  s.output_fn = [](std::span<const OutputBatch>) {};
  s.model_fn = [model_fn = s.model_fn](const Inputs& in, ModeKeys mode) {
    ModelSpec model = model_fn(in, mode);
    model.output_info = {{"x", in[0]}};
    return model;
  };
  for (const ModeKeys mode : {ModeKeys::EVAL, ModeKeys::PREDICT}) {
    s.run_mode = mode;
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(s), kExitInterrupted);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("interrupted by SIGTERM after 0 samples"));
    EXPECT_LT(looks, 100000);
  }
}

// Schedulers give a job seconds to end: what is saved is enough, and the evaluation can be had later.
TEST_F(StopSignalTest, LeavesOutTheLastEvaluationAndSaysSoInTheStatus) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  auto hook = std::make_shared<CallbackHook>();
  bool interrupted_at_the_end = false;
  int evaluations = 0;
  hook->on_after = [](Session& session, const StepResult&) {
    EXPECT_FALSE(session.interrupted());
    if (session.global_step() == 2) raise(SIGUSR1);
  };
  hook->on_evaluation = [&](Session&, const Metrics&) { ++evaluations; };
  hook->on_end = [&](Session& session) { interrupted_at_the_end = session.interrupted(); };
  s.hooks = {hook};
  EXPECT_EQ(run(s), 75);
  EXPECT_EQ(evaluations, 0);
  EXPECT_TRUE(interrupted_at_the_end);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 2);
  hook->on_after = {};
  EXPECT_EQ(run(s), 0);
  EXPECT_EQ(evaluations, 1);
  EXPECT_FALSE(interrupted_at_the_end);
}

TEST_F(StopSignalTest, EndsTheLastEvaluationInItsMiddle) {
  auto s = spec();
  s.inter_mode = ModeKeys::EVAL;
  s.batch_size = 1;
  int evaluated = 0;
  bool signals = true;
  s.input_fn = [&](ModeKeys mode) {
    if (mode == ModeKeys::TRAIN) return counting_data(10).repeat();
    return counting_data(1000).map([&](const SampleContext&, const Element& element) {
      if (++evaluated == 2 && signals) raise(SIGTERM);
      return element;
    });
  };
  const RunResult result = run_or_throw(s);
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.evaluation.empty());
  EXPECT_LT(evaluated, 1000);
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 4) << "saved before";
  signals = false;
  const RunResult again = run_or_throw(s);
  EXPECT_FALSE(again.interrupted);
  EXPECT_EQ(again.evaluation.size(), 2u) << "the next start makes up for it";
}

}  // namespace
}  // namespace mox
