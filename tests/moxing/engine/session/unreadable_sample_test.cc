// A sample that cannot be read ends a run, which keeps what it has trained and goes on once the sample is
// there.
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

}  // namespace
}  // namespace mox
