// A training that goes on and is evaluated on other data: values of the one say nothing of the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/checkpoint/best_checkpoint.h"
#include "moxing/engine/session/training_state.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The error is that of the data, and how far the number of steps is from `best`.
ModelFn error_beside(float best) {
  return [best](const Inputs& in, ModeKeys) {
    const Tensor w = get_variable("w", {}, zeros());
    return ModelSpec{.loss = w + reduce_sum(in[0]) * 0.0f,
                     .log_info = {{"error", reduce_mean(in[0] + abs(w + best))}}};
  };
}

class EvaluationDataOfARun : public SmallRun {
 protected:
  static Dataset samples_of(float error) {
    Array x(DType::kFloat32, {4, 1});
    for (float& value : x.values<float>()) value = error;
    return Dataset::from_arrays({x});
  }
  RunSpec run_of(float error, int64_t steps, float best = 40) {
    auto s = spec();
    s.input_fn = [error](ModeKeys mode) {
      return mode == ModeKeys::TRAIN ? counting_data(10).repeat() : samples_of(error);
    };
    s.model_fn = error_beside(best);
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_steps = 10;
    s.save_model_steps = 10;
    s.max_number_of_steps = steps;
    s.keep_best = {{.metric = "error"}};
    s.early_stopping = {{.metric = "error", .patience = 3}};
    s.plateau = {{.monitor = {.metric = "error", .patience = 3}}};
    return s;
  }
  // Of the same run, without anything that evaluates or follows evaluations.
  RunSpec part_without_hooks(int64_t steps) {
    auto s = run_of(0, steps);
    s.inter_mode = {};
    s.eval_every_n_steps = {};
    s.keep_best = {};
    s.early_stopping = {};
    s.plateau = {};
    return s;
  }
  // What is logged, and `*result`.
  static std::string warnings_of(const RunSpec& spec, RunResult* result = nullptr) {
    const ScopedConfiguration configuration({"--threads=1", "--log_level=warning"});
    testing::internal::CaptureStderr();
    const RunResult ended = run_or_throw(spec);
    if (result) *result = ended;
    return testing::internal::GetCapturedStderr();
  }
  Checkpoint best() { return load_checkpoint(best_directory(log_dir_)); }
  // As an older program has written them.
  static void forget_data(Checkpoint checkpoint, const std::string& directory) {
    EXPECT_EQ(checkpoint.state.erase("evaluation_data"), 1U);
    save_checkpoint(directory, checkpoint);
  }
};

TEST_F(EvaluationDataOfARun, OnOtherDataTheComparisonBeginsAnew) {
  run_or_throw(run_of(0, 60));
  EXPECT_EQ(best().global_step, 40);
  EXPECT_EQ(best_mark_of(best())->value, 0);
  // The best of the other data is far above that of the former.
  RunResult result;
  testing::internal::CaptureStdout();
  const std::string said = warnings_of(run_of(100, 300, 120), &result);
  const std::string output = testing::internal::GetCapturedStdout();
  EXPECT_THAT(said,
              AllOf(HasSubstr("the data of input_fn(eval) are others"), HasSubstr("they were 'contents "),
                    HasSubstr("' and are 'contents "), HasSubstr("from_arrays(4)"),
                    HasSubstr("the best state by evaluations of other data")));
  EXPECT_EQ(best().global_step, 120);
  EXPECT_EQ(best_mark_of(best())->value, 100);
  EXPECT_EQ(list_checkpoints(best_directory(log_dir_)).size(), 1U);
  EXPECT_EQ(result.global_step, 150) << result.stop_reason;
  EXPECT_THAT(result.stop_reason, HasSubstr("not improved on 100 (global step 120) for 3 evaluations"));
  EXPECT_THAT(output, AllOf(HasSubstr("best error: 100 at global step 120"), Not(HasSubstr("step 40"))));
  // On those of now the run stays stopped.
  EXPECT_THAT(warnings_of(run_of(100, 300, 120), &result), Not(HasSubstr("others")));
  EXPECT_EQ(result.global_step, 150);
  EXPECT_EQ(best().global_step, 120);
}

TEST_F(EvaluationDataOfARun, TheSameDataInOtherBatchesAreTheSame) {
  run_or_throw(run_of(0, 60));
  auto s = run_of(0, 70);
  s.eval_batch_size = 3;
  EXPECT_EQ(warnings_of(s), "");
  EXPECT_EQ(best().global_step, 40);
  s = run_of(0, 70);  // finished; of other samples it is evaluated once more
  s.eval_batch_size = 3;
  s.eval_steps = 1;
  EXPECT_THAT(warnings_of(s), HasSubstr("take(3)"));
  EXPECT_EQ(best().global_step, 70);
}

TEST_F(EvaluationDataOfARun, ThatOfAFinishedRunIsMeasuredAtItsLastStep) {
  run_or_throw(run_of(0, 40));
  EXPECT_THAT(warnings_of(run_of(100, 40)), HasSubstr("are others"));
  EXPECT_EQ(best().global_step, 40);
  EXPECT_EQ(best_mark_of(best())->value, 100);
  // The checkpoint is the one of before; the best state is of these data.
  EXPECT_THAT(warnings_of(run_of(100, 50)), AllOf(HasSubstr("are others"), Not(HasSubstr("best state by"))));
  EXPECT_EQ(best().global_step, 40);
}

TEST_F(EvaluationDataOfARun, APartWithoutEvaluationsKnowsThoseBeforeIt) {
  const auto part = [&](float error, int64_t steps) {
    auto s = run_of(error, steps);
    s.keep_best = {};
    return s;
  };
  run_or_throw(part(0, 40));
  run_or_throw(part_without_hooks(50));
  EXPECT_THAT(warnings_of(part(100, 60)), HasSubstr("are others"));
}

TEST_F(EvaluationDataOfARun, APartWithoutAHookLeavesWhatItKnows) {
  const auto part = [&](int64_t steps) {
    auto s = run_of(0, steps);
    s.snapshots = {{.every_n_steps = 10}};
    return s;
  };
  run_or_throw(part(60));
  Checkpoint checkpoint = load_checkpoint(log_dir_);  // and as a part in stage 2 leaves it
  checkpoint.state.at("hooks").insert(1, R"("boost_report":"{}",)");
  save_checkpoint(log_dir_, checkpoint);
  run_or_throw(part_without_hooks(65));
  EXPECT_THAT(load_checkpoint(log_dir_).state.at("hooks"),
              AllOf(HasSubstr("early_stopping/error"), Not(HasSubstr("boost_report"))));
  RunResult result;
  EXPECT_EQ(warnings_of(part(400), &result), "");
  EXPECT_EQ(result.global_step, 70) << "those of steps 50 and 60 count";
  EXPECT_EQ(best().global_step, 40);
  EXPECT_THAT(names_in(log_dir_ + "/snapshots"), testing::Contains("snapshot-60.safetensors"));
}

// What was waited for on the former data has nothing to do with what follows.
TEST_F(EvaluationDataOfARun, APartOnOtherDataLeavesNoComparison) {
  run_or_throw(run_of(0, 60));
  auto s = run_of(100, 70);
  s.keep_best = {};
  s.early_stopping = {};
  s.plateau = {};
  EXPECT_THAT(warnings_of(s), HasSubstr("are others"));
  RunResult result;
  EXPECT_THAT(warnings_of(run_of(100, 400), &result),
              HasSubstr("the best state by evaluations of other data"));
  EXPECT_EQ(result.global_step, 110) << "three after that of step 80: " << result.stop_reason;
  EXPECT_EQ(best().global_step, 80);
}

TEST_F(EvaluationDataOfARun, ACheckpointThatDoesNotKnowGoesOnAsBefore) {
  run_or_throw(run_of(0, 60));
  forget_data(load_checkpoint(log_dir_), log_dir_);
  forget_data(best(), best_directory(log_dir_));
  RunResult result;
  EXPECT_EQ(warnings_of(run_of(100, 400), &result), "");
  EXPECT_EQ(result.global_step, 70);
  EXPECT_EQ(best().global_step, 40);
  // From then on it does, also of the best state, which is still the former.
  EXPECT_THAT(warnings_of(run_of(50, 80)),
              AllOf(HasSubstr("are others"), HasSubstr("the best state by evaluations of other data")));
  EXPECT_EQ(best().global_step, 80);
}

}  // namespace
}  // namespace mox
