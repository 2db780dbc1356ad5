#include "moxing/engine/compile/internal/instruction_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/engine/compile/model_arithmetic.h"
#include "moxing/engine/session/training_state.h"
#include "ops/fusion/default_rules.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "tests/moxing/small_run.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace mox::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr InstructionSet kOld = InstructionSet::kAvx2, kNew = InstructionSet::kAvx512,
                         kNewest = InstructionSet::kAvx512BFloat16;

InstructionChoice chosen(const std::vector<InstructionSet>& of_ranks,
                         std::optional<InstructionSet> kept = std::nullopt, bool allow_inexact = false) {
  std::vector<RankInstructions> ranks;
  for (const InstructionSet set : of_ranks) ranks.push_back({"host" + std::to_string(ranks.size()), set});
  return choose_instruction_set(ranks, kept, "the/checkpoint", allow_inexact);
}

TEST(InstructionChoiceTest, IsWhatOneProcessHas) {
  const InstructionChoice choice = chosen({kNew});
  EXPECT_EQ(choice.set, kNew);
  EXPECT_THAT(choice.remarks, IsEmpty());
}

TEST(InstructionChoiceTest, IsWhatAllRanksHaveAndNamesTheOneWithLeast) {
  const InstructionChoice choice = chosen({kNew, kNewest, kOld, kOld});
  EXPECT_EQ(choice.set, kOld);
  EXPECT_THAT(choice.remarks,
              ElementsAre("rank 2 (host host2) has avx2 instructions, rank 1 (host host1) has "
                          "avx512_bf16: all ranks compute with avx2"));
}

TEST(InstructionChoiceTest, IsThatOfTheCheckpointWhereAllHaveIt) {
  const InstructionChoice choice = chosen({kNewest, kNew}, kOld);
  EXPECT_EQ(choice.set, kOld);
  EXPECT_THAT(choice.remarks,
              ElementsAre(HasSubstr("all ranks compute with avx2"),
                          testing::AllOf(HasSubstr("'the/checkpoint' was computed with avx2 instructions"),
                                         HasSubstr("avx512 are available, and --allow_inexact uses them"))));
  EXPECT_THAT(chosen({kNew, kNew}, kNew).remarks, IsEmpty());
}

TEST(InstructionChoiceTest, IsNotThatOfTheCheckpointWhereBitsMayChange) {
  const InstructionChoice choice = chosen({kNew}, kOld, true);
  EXPECT_EQ(choice.set, kNew);
  EXPECT_THAT(choice.remarks, ElementsAre(HasSubstr("allow_inexact is set, so the run goes on with avx512")));
}

TEST(InstructionChoiceTest, NamesTheRankThatCannotDoWhatTheCheckpointsDid) {
  const InstructionChoice choice = chosen({kNewest, kNew}, kNewest);
  EXPECT_EQ(choice.set, kNew);
  EXPECT_THAT(choice.remarks,
              ElementsAre(HasSubstr("all ranks compute with avx512"),
                          HasSubstr("'the/checkpoint' was computed with avx512_bf16 instructions, and rank 1 "
                                    "(host host1) has avx512: the result is as good")));
  EXPECT_THAT(chosen({kOld}, kNew).remarks, ElementsAre(HasSubstr("and this processor has avx2: ")));
}

TEST(SettledArithmetic, IsTheSameOnAllRanks) {
  Arithmetic wanted;
  wanted.rules.direct_convolutions = true;
  run_ranks(3, [&](Communicator& communicator) {
    const Arithmetic arithmetic = settle_arithmetic(communicator, wanted, {}, false);
    EXPECT_TRUE(arithmetic.rules.direct_convolutions);
    EXPECT_EQ(arithmetic.rules.precision, Precision::kFloat32);
    EXPECT_EQ(instruction_set(), available_instruction_set());
  });
}

class KeptInstructions : public SmallRun {
 protected:
  // The checkpoint of two steps.
  Checkpoint trained() {
    auto s = spec();
    s.max_number_of_steps = 2;
    run_or_throw(s);
    return load_checkpoint(log_dir_);
  }
  // What a run says that goes on from this checkpoint.
  std::string warning_after(const Checkpoint& checkpoint) {
    save_checkpoint(log_dir_, checkpoint);
    auto s = spec();
    set_log_level(LogLevel::kWarning);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_or_throw(s).global_step, 4);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(KeptInstructions, AreInTheCheckpoint) {
  const TrainingState state = from_checkpoint_state(trained(), "x");
  EXPECT_EQ(state.instruction_set, instruction_set());
  EXPECT_EQ(state.arithmetic, "precision fp32, conv_algorithm auto");
}

TEST_F(KeptInstructions, AreNotMentionedWhereTheyAreInUse) {
  EXPECT_THAT(warning_after(trained()), testing::Not(HasSubstr("was computed")));
}

TEST_F(KeptInstructions, MayBeMissing) {
  Checkpoint checkpoint = trained();
  checkpoint.state.erase("instruction_set");
  checkpoint.state.erase("arithmetic");
  EXPECT_THAT(warning_after(checkpoint), testing::Not(HasSubstr("was computed")));
}

TEST_F(KeptInstructions, AreNamedWhereTheProcessorHasLess) {
  if (available_processor().tiles) GTEST_SKIP() << "needs a processor without AMX";
  Checkpoint checkpoint = trained();
  checkpoint.state["instruction_set"] = "\"amx\"";
  EXPECT_THAT(warning_after(checkpoint), HasSubstr("was computed with amx instructions, and this processor"));
}

TEST_F(KeptInstructions, AnotherArithmeticOfTheOptionsIsNamed) {
  Checkpoint checkpoint = trained();
  checkpoint.state["arithmetic"] = "\"precision bf16, conv_algorithm direct\"";
  EXPECT_THAT(warning_after(checkpoint),
              HasSubstr("was computed with precision bf16, conv_algorithm direct and is continued with "
                        "precision fp32, conv_algorithm auto"));
}

// Fewer convolutions by Winograd's method have other bits.
TEST_F(KeptInstructions, AnotherErrorOfConvolutionsIsNamed) {
  const Checkpoint checkpoint = trained();
  const ScopedConfiguration configuration(
      {"--threads=2", "--num_devices=1", "--conv_error=2e-6", "--log_level=warning"});
  EXPECT_THAT(warning_after(checkpoint),
              HasSubstr("was computed with precision fp32, conv_algorithm auto and is continued with "
                        "precision fp32, conv_algorithm auto, conv_error 2e-06"));
}

TEST_F(KeptInstructions, AnErrorOfDirectConvolutionsIsRefused) {
  const ScopedConfiguration configuration({"--conv_algorithm=direct", "--conv_error=2e-6"});
  EXPECT_THAT(message_of_run<ConfigError>(spec()),
              HasSubstr("conv_error is 2e-06, but conv_algorithm is direct"));
}

TEST_F(KeptInstructions, ErrorsOfConvolutionsOutOfRangeAreRefused) {
  for (const char* value : {"-1e-6", "0.011", "nan", "1e-6x"}) {
    SCOPED_TRACE(value);
    EXPECT_THAT(message_of<ConfigError>(
                    [&] { const ScopedConfiguration configuration({std::string("--conv_error=") + value}); }),
                testing::ContainsRegex("conv_error (must be 0 to 0.01|expects a finite number)"));
  }
}

TEST(ConvolutionErrorOption, LetsEveryConvolutionThroughByDefault) {
  const ScopedConfiguration configuration(std::vector<std::string>{});
  EXPECT_EQ(resolve<double>("conv_error", std::nullopt), kStatedConvolutionError);
}

TEST_F(KeptInstructions, OfAnUnknownNameAreNoStateOfARun) {
  Checkpoint checkpoint = trained();
  checkpoint.state["instruction_set"] = "\"sse2\"";
  save_checkpoint(log_dir_, checkpoint);
  EXPECT_THAT(message_of_run<DataError>(spec()), HasSubstr("sse2"));
}

// With each set of instructions that the tests of this program are run with.
TEST(SupportedPrecision, SaysWhatBFloat16CostsHere) {
  const ScopedConfiguration configuration({"--log_level=warning"});
  const auto said = [](Precision wanted, Precision expected) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(supported_precision(wanted), expected);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(Precision::kFloat32, Precision::kFloat32), IsEmpty());
  switch (bfloat16_support()) {
    case BFloat16Support::kNative:
      EXPECT_THAT(said(Precision::kBFloat16, Precision::kBFloat16), IsEmpty());
      break;
    case BFloat16Support::kEmulated:
      EXPECT_THAT(said(Precision::kBFloat16, Precision::kBFloat16),
                  HasSubstr("about four times as long as with precision fp32"));
      break;
    case BFloat16Support::kNone:
      EXPECT_THAT(said(Precision::kBFloat16, Precision::kFloat32), HasSubstr("gains nothing here"));
      break;
  }
}

}  // namespace
}  // namespace mox::internal
