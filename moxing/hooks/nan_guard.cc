#include <fmt/format.h>

#include <cmath>

#include "moxing/hooks/hooks.h"
#include "runtime/base/error.h"
#include "runtime/text/unsigned_nan.h"

namespace mox {
namespace {

class NanGuardHook : public TrainingHook {
 public:
  void before_run(Session& session) override { learning_rate_ = session.learning_rate(); }
  void after_run(Session& session, const StepResult& result) override {
    const double loss = result.number(kTrainedLoss);
    if (std::isfinite(loss)) return;
    throw NumericError(
        fmt::format("the loss is {:g} at global step {} (learning rate {:g}); the checkpoints saved before "
                    "are untouched. Usual causes: a learning rate that is too high (try clip_gradient_norm "
                    "or a warm-up), a logarithm or division of zero, bad input values",
                    unsigned_nan(loss), session.global_step(), learning_rate_));
  }

 private:
  double learning_rate_ = 0;  // of the step
};

}  // namespace

std::shared_ptr<Hook> nan_guard_hook() { return std::make_shared<NanGuardHook>(); }

}  // namespace mox
