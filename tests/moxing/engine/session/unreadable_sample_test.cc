// A sample that cannot be read ends a run, which keeps what it has trained and goes on once the
// sample is there.
#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

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

  void expect_goes_on() {
    const std::string whole = fresh_directory("unreadable_whole");
    run_or_throw(of_samples(whole, false));
    EXPECT_THAT(message_of_run<DataError>(of_samples(log_dir_, true)),
                testing::HasSubstr("'daisy/17.jpg' is damaged (on_bad_sample)"));
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
  const auto logged = [&](const std::string& log_dir) {
    auto run = of_samples(log_dir, false);
    run.model_fn = [model_fn = run.model_fn](const Inputs& in, ModeKeys mode) {
      ModelSpec model = model_fn(in, mode);
      model.log_info = {{"loss", model.loss}};
      return model;
    };
    return run;
  };
  auto s = logged(log_dir_);
  s.input_fn = [data = s.input_fn](ModeKeys mode) {
    if (mode == ModeKeys::TRAIN) return data(mode);
    return counting_data(4).map([](const Element& sample) -> Element {
      if (sample[0].item() == 2) throw DataError("'daisy/2.jpg' is damaged (on_bad_sample)");
      return sample;
    });
  };
  s.inter_mode = ModeKeys::EVAL;
  s.eval_every_n_steps = 4;
  EXPECT_THAT(message_of_run<DataError>(s), testing::HasSubstr("'daisy/2.jpg' is damaged (on_bad_sample)"));
  EXPECT_EQ(load_checkpoint(log_dir_).global_step, 4);
  run_or_throw(logged(log_dir_));  // without evaluations
  const std::string whole = fresh_directory("unreadable_whole");
  run_or_throw(logged(whole));
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
}

}  // namespace
}  // namespace mox
