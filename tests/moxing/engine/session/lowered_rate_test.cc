// A learning rate that a plateau has lowered, in a run that is continued.
#include <gmock/gmock.h>

#include <algorithm>

#include "moxing/hooks/hooks.h"
#include "tests/moxing/small_run.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LoweredRate : public SmallRun {
 protected:
  // What the part of the run up to `steps` says. Its loss falls by less than the plateau waits for.
  std::string go_on(int64_t steps, bool has_plateau) {
    const ScopedConfiguration configuration({"--threads=1"});
    RunSpec s = spec();
    s.inter_mode = ModeKeys::EVAL;
    s.eval_every_n_steps = 1;
    s.max_number_of_steps = steps;
    if (has_plateau)
      s.plateau = {{.monitor = {.metric = "loss", .min_change = 100, .patience = 1}, .factor = 0.5}};
    testing::internal::CaptureStderr();
    run_or_throw(s);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LoweredRate, IsSaidWhereItGoesOn) {
  EXPECT_THAT(go_on(3, true), Not(HasSubstr("at global step 3")));
  EXPECT_THAT(go_on(4, true), AllOf(HasSubstr("info the learning rate is multiplied by 0.25, to which"),
                                    Not(HasSubstr("plateau.metric is not set"))));
  const std::string without = go_on(6, false);
  EXPECT_THAT(without, AllOf(HasSubstr("warning the learning rate is multiplied by 0.125, to which"),
                             HasSubstr("at global step 4; plateau.metric is not set now")));
}

TEST_F(LoweredRate, OneThatIsAsGivenIsNotMentioned) {
  go_on(2, false);
  EXPECT_THAT(go_on(3, false), Not(HasSubstr("is multiplied by")));
}

}  // namespace
}  // namespace mox
