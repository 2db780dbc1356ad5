// conv_algorithm measured: what is measured holds for all ranks and for as long as the training lasts.
#include "moxing/engine/compile/convolution_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/engine/compile/model_arithmetic.h"
#include "moxing/engine/session/training_state.h"
#include "runtime/base/log.h"
#include "tests/moxing/small_run.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace mox::internal {
namespace {

using testing::HasSubstr;
using testing::Not;

const ConvolutionClasses kSome = {{3, 1, 512, ConvolutionResult::kOutput},
                                  {3, 2, 16, ConvolutionResult::kFilterGradient}};
constexpr const char* kKept = "precision fp32, conv_algorithm measured [3x3/1 512 y, 3x3/2 16 dw]";

TEST(ConvolutionTrialTest, AllRanksTakeWhatRankZeroMeasures) {
  const Arithmetic wanted = arithmetic_of({.conv_algorithm = "measured"}, "test");
  std::vector<ConvolutionClasses> of_ranks(2);
  run_ranks(2, [&](Communicator& communicator) {
    of_ranks[communicator.rank()] =
        settle_arithmetic(communicator, wanted, {}, false, 1).rules.direct_classes;
  });
  EXPECT_EQ(of_ranks[0], of_ranks[1]);
  for (const ConvolutionClass& of : of_ranks[0]) EXPECT_TRUE(of.stride == 1 || of.channels <= 128);
}

TEST(ConvolutionTrialTest, WhatACheckpointWasComputedWithIsKept) {
  EXPECT_EQ(description_of({.rules = {.direct_classes = kSome}, .measures_convolutions = true}), kKept);
  // Rank 0 alone has read the checkpoint: the others learn from it.
  run_ranks(2, [&](Communicator& communicator) {
    const Arithmetic settled =
        settle_arithmetic(communicator, arithmetic_of({.conv_algorithm = "measured"}, "test"),
                          {"x", std::nullopt, communicator.rank() == 0 ? kKept : ""}, false, 1);
    EXPECT_EQ(settled.rules.direct_classes, kSome);
    EXPECT_EQ(description_of(settled), kKept);
  });
}

// Answers have the same bits each time.
TEST(ConvolutionTrialTest, NothingIsMeasuredWhereNothingIsTrained) {
  Communicator alone;
  const Arithmetic settled = settle_arithmetic(alone, arithmetic_of({.conv_algorithm = "measured"}, "test"),
                                               {"x", std::nullopt, kKept}, false);
  EXPECT_TRUE(settled.rules.direct_classes.empty());
}

class MeasuredConvolutions : public SmallRun {};

TEST_F(MeasuredConvolutions, AreInTheCheckpointAndKept) {
  const ScopedConfiguration configuration(
      {"--threads=1", "--num_devices=1", "--conv_algorithm=measured", "--log_level=info"});
  auto s = spec();
  s.max_number_of_steps = 2;
  run_or_throw(s);
  Checkpoint checkpoint = load_checkpoint(log_dir_);
  EXPECT_THAT(from_checkpoint_state(checkpoint, "x").arithmetic,
              testing::StartsWith("precision fp32, conv_algorithm measured ["));
  checkpoint.state["arithmetic"] = '"' + std::string(kKept) + '"';
  save_checkpoint(log_dir_, checkpoint);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_or_throw(spec()).global_step, 4);
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(HasSubstr("conv_algorithm measured, as before: of the classes of convolutions that "
                               "Winograd's method may compute, these sum directly: 3x3/1 512 y, "
                               "3x3/2 16 dw"),
                     Not(HasSubstr("was computed"))));
  EXPECT_EQ(from_checkpoint_state(load_checkpoint(log_dir_), "x").arithmetic, kKept);
}

}  // namespace
}  // namespace mox::internal
