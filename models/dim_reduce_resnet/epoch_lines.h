// Time and loss of each epoch, in the form of MindSpore's LossMonitor and TimeMonitor.
#pragma once

#include <moxing/moxing.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "runtime/text/unsigned_nan.h"

namespace dim_reduce_resnet {

// On rank 0, after the last step of each epoch:
//   epoch: 1 step: 312, loss is 6.7231
//   epoch time: 41873.215 ms, per step time: 134.209 ms
class EpochLines : public mox::TrainingHook {
 public:
  void after_create_session(mox::Session& session) override {
    begun_ = Clock::now();
    first_ = session.global_step();
    epoch_ = epoch_of(session);
  }
  void after_run(mox::Session& session, const mox::StepResult& result) override {
    if (session.steps_per_epoch() <= 0 || epoch_of(session) == epoch_) return;
    epoch_ = epoch_of(session);
    const auto now = Clock::now();
    const double milliseconds = std::chrono::duration<double, std::milli>(now - begun_).count();
    const int64_t steps = session.global_step() - first_;
    if (mox::rank() == 0) {
      std::printf("epoch: %lld step: %lld, loss is %g\n", static_cast<long long>(epoch_),
                  static_cast<long long>(std::llround(session.steps_per_epoch())),
                  mox::unsigned_nan(result.number("loss")));
      std::printf("epoch time: %.3f ms, per step time: %.3f ms\n", milliseconds,
                  milliseconds / static_cast<double>(steps));
      std::fflush(stdout);
    }
    begun_ = now;
    first_ = session.global_step();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Those that are complete.
  static int64_t epoch_of(const mox::Session& session) {
    if (session.steps_per_epoch() <= 0) return 0;
    return static_cast<int64_t>(session.global_step() / session.steps_per_epoch() + 1e-9);
  }

  Clock::time_point begun_;
  int64_t first_ = 0, epoch_ = 0;
};

}  // namespace dim_reduce_resnet
