// A sample that cannot be read ends a run, which keeps what it has trained and goes on once the
// sample is there.
#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::HasSubstr;

class UnreadableSample : public SmallRun {
 protected:
  // Momentum over 40 samples, of which one cannot be read in the second pass; every step has a part in w.
  RunSpec of_samples(const std::string& log_dir, bool is_damaged) {
    auto s = spec();
    s.input_fn = [is_damaged](ModeKeys) {
      return counting_data(40).shuffle(40).repeat().map(
          [is_damaged, seen = std::make_shared<std::atomic<int>>(0)](const Element& sample) {
            if (is_damaged && sample[0].item() == 17 && ++*seen == 2)
              throw DataError("'daisy/17.jpg' is damaged (on_bad_sample)");
            return sample;
          });
    };
    s.model_fn = [](const Inputs& in, ModeKeys) {
      const Tensor w = get_variable("w", {}, zeros());
      return ModelSpec{.loss = reduce_mean(square(w - in[0]))};
    };
    s.optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.01, .momentum = 0.9});
    s.log_dir = log_dir;
    s.max_number_of_steps = 40;
    return s;
  }

  // The loss is in log_info, and what is evaluated are four samples, of which one may be damaged.
  RunSpec of_evaluations(const std::string& log_dir, bool is_damaged) {
    auto s = of_samples(log_dir, false);
    s.model_fn = [model_fn = s.model_fn](const Inputs& in, ModeKeys mode) {
      ModelSpec model = model_fn(in, mode);
      model.log_info = {{"loss", model.loss}};
      return model;
    };
    s.input_fn = [is_damaged, data = s.input_fn](ModeKeys mode) {
      if (mode == ModeKeys::TRAIN) return data(mode);
      return counting_data(4).map([is_damaged](const Element& sample) -> Element {
        if (is_damaged && sample[0].item() == 2) throw DataError("'daisy/2.jpg' is damaged (on_bad_sample)");
        return sample;
      });
    };
    s.inter_mode = ModeKeys::EVAL;
    return s;
  }

  // The run in log_dir_, which goes on without evaluations.
  void expect_ends_as_the_whole() {
    const std::string whole = fresh_directory("unreadable_whole");
    for (const std::string& log_dir : {log_dir_, whole}) {
      auto s = of_evaluations(log_dir, false);
      s.inter_mode = {};
      run_or_throw(s);
    }
    EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
  }

  void expect_goes_on() {
    const std::string whole = fresh_directory("unreadable_whole");
    run_or_throw(of_samples(whole, false));
    EXPECT_THAT(message_of_run<DataError>(of_samples(log_dir_, true)),
                HasSubstr("'daisy/17.jpg' is damaged (on_bad_sample)"));
    const int64_t kept = load_checkpoint(log_dir_).global_step;
    EXPECT_GT(kept, 1);
    EXPECT_LT(kept, 40);
    run_or_throw(of_samples(log_dir_, false));
    EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
  }
};

TEST_F(UnreadableSample, TheStepsBeforeItAreSaved) { expect_goes_on(); }

// The first batch of the step may have been taken already when the second one cannot be read.
TEST_F(UnreadableSample, TheStepsBeforeItAreSavedWhereAStepHasSeveralBatches) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--log_level=error", "--logical_replicas=4", "--data_threads=1"});
  expect_goes_on();
}

// Of the evaluation at step 4: that step is kept.
TEST_F(UnreadableSample, OfAnEvaluationLosesNoStep) {
  auto s = of_evaluations(log_dir_, true);
  s.eval_every_n_steps = 4;
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("'daisy/2.jpg' is damaged (on_bad_sample)"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 4);
  expect_ends_as_the_whole();
}

// What follows evaluations has seen all that it sees in a run that nothing disturbs.
TEST_F(UnreadableSample, AnEvaluationThatFailedIsMadeUpFor) {
  const auto following = [&](const std::string& log_dir, bool is_damaged) {
    auto s = of_evaluations(log_dir, is_damaged);
    s.eval_every_n_steps = 4;
    s.plateau = {{.monitor = {.metric = "loss", .patience = 1}, .factor = 0.5}};
    return s;
  };
  EXPECT_THAT(message_of_run<DataError>(following(log_dir_, true)), HasSubstr("'daisy/2.jpg' is damaged"));
  EXPECT_THAT(message_of_run<DataError>(following(log_dir_, true)), HasSubstr("'daisy/2.jpg' is damaged"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 4);
  testing::internal::CaptureStdout();
  run_or_throw(following(log_dir_, false));
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("evaluation at global step 4:"));
  const std::string whole = fresh_directory("unreadable_whole");
  run_or_throw(following(whole, false));
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
  EXPECT_FALSE(load_checkpoint(log_dir_).state.contains("evaluation_due"));
}

// The batch of the step that would have followed is taken again.
TEST_F(UnreadableSample, OfAnEvaluationBeforeAStepLosesNoBatch) {
  auto s = of_evaluations(log_dir_, true);
  s.hooks = {before_run_hook([](Session& session) {
    if (session.global_step() == 3) session.evaluate();
  })};
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("'daisy/2.jpg' is damaged (on_bad_sample)"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 3);
  expect_ends_as_the_whole();
}

TEST_F(UnreadableSample, AMetricThatFailsLosesNoStep) {
  auto s = of_evaluations(log_dir_, false);
  s.eval_every_n_steps = 4;
  s.model_fn = [model_fn = s.model_fn](const Inputs& in, ModeKeys mode) {
    ModelSpec model = model_fn(in, mode);
    model.metrics = {{"own",
                      {.inputs = {in[0]},
                       .add = [](const metrics::Sample&, metrics::State&) {},
                       .result = [](const metrics::State&) -> metrics::Result {
                         throw DataError("there is nothing to divide by");
                       }}}};
    return model;
  };
  EXPECT_THAT(message_of_run<DataError>(s), HasSubstr("there is nothing to divide by"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 4);
  expect_ends_as_the_whole();
}

}  // namespace
}  // namespace mox
