#include <gmock/gmock.h>
#include <signal.h>

#include "moxing/internal/stop_signal.h"
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
  const internal::StopSignal next;
  EXPECT_EQ(next.received(), 0) << "a signal counts for the run that it came in";
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
  EXPECT_EQ(run_or_throw(s).global_step, 4) << "goes on where it was stopped";
}

}  // namespace
}  // namespace mox
