#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/engine/session/training_state.h"
#include "moxing/job/facts.h"
#include "runtime/base/log.h"
#include "runtime/job/agreement.h"
#include "tests/moxing/small_run.h"
#include "tests/runtime/comm/thread_ranks.h"

namespace mox::internal {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

std::string warning_of_ranks(const std::vector<std::string>& processors) {
  set_log_level(LogLevel::kWarning);  // whatever tests of this process have set before
  testing::internal::CaptureStderr();
  run_ranks(static_cast<int>(processors.size()), [&](Communicator& communicator) {
    mention_other_processors(communicator, processors[communicator.rank()]);
  });
  return testing::internal::GetCapturedStderr();
}

TEST(OtherProcessors, AreNamedOnce) {
  const std::string warning = warning_of_ranks({"old", "old", "new"});
  EXPECT_THAT(warning, HasSubstr("rank 2 (host host) computes on 'new', rank 0 on 'old'"));
  EXPECT_EQ(std::ranges::count(warning, '\n'), 1) << warning;
}

TEST(OtherProcessors, AreNoneWhereAllAreAlike) { EXPECT_EQ(warning_of_ranks({"old", "old"}), ""); }

class ProcessorOfCheckpoint : public SmallRun {
 protected:
  // What a run says that goes on from a checkpoint whose processor is changed to this one.
  std::string warning_after(const std::string& processor) {
    auto s = spec();
    s.max_number_of_steps = 2;
    run_or_throw(s);
    Checkpoint checkpoint = load_checkpoint(log_dir_);
    TrainingState state = from_checkpoint_state(checkpoint, "x");
    EXPECT_EQ(state.processor, computed_by());
    state.processor = processor;
    checkpoint.state = to_checkpoint_state(state);
    save_checkpoint(log_dir_, checkpoint);
    s.max_number_of_steps = 4;
    set_log_level(LogLevel::kWarning);
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_or_throw(s).global_step, 4);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(ProcessorOfCheckpoint, IsNamedWhereTheRunGoesOnOnAnotherOne) {
  EXPECT_THAT(warning_after("A machine of before"), HasSubstr("was computed on 'A machine of before'"));
}

TEST_F(ProcessorOfCheckpoint, IsNotMentionedWhereItIsTheSameOrNotKnown) {
  EXPECT_THAT(warning_after(computed_by()), testing::Not(HasSubstr("was computed on")));
}

// Its kernels may cut sums differently.
TEST_F(ProcessorOfCheckpoint, IsNamedWithItsLibrary) {
  EXPECT_THAT(warning_after(processor_model() + ", oneDNN 2.5.0"),
              HasSubstr(", oneDNN 2.5.0' and is continued on '"));
}

TEST_F(ProcessorOfCheckpoint, WasWithoutItsLibraryBefore) {
  EXPECT_THAT(warning_after(processor_model()), testing::Not(HasSubstr("was computed on")));
}

TEST(FactsOfComputeLibrary, NameItAndItsBuild) {
  EXPECT_THAT(facts_of_compute_library(),
              testing::AllOf(
                  Contains(Pair("library that computes", testing::StartsWith("oneDNN "))),
                  Contains(Pair("build of the library that computes", testing::SizeIs(testing::Ge(16u))))));
}

TEST_F(ProcessorOfCheckpoint, MayBeMissing) {
  EXPECT_THAT(warning_after(""), testing::Not(HasSubstr("was computed on")));
}

}  // namespace
}  // namespace mox::internal
