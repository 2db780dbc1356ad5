#include "moxing/engine/session/internal/training/zero_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/log.h"
#include "runtime/job/job.h"

namespace mox::internal {
namespace {

constexpr double kFewest = 10, kMost = 100;  // steps

}  // namespace

ZeroLoss::ZeroLoss(const ModelSpec& spec) : name_(kTrainedLoss) {
  for (const auto& [name, value] : spec.log_info)
    if (value == spec.loss) name_ = name;
}

void ZeroLoss::note(const StepResult& result, double steps_per_epoch) {
  if (is_over_) return;
  if (result.number(name_) != 0) {
    is_over_ = true;
    return;
  }
  const double pass = steps_per_epoch > 0 ? std::ceil(steps_per_epoch) : kMost;
  if (static_cast<double>(++steps_) < std::clamp(pass, kFewest, kMost)) return;
  is_over_ = true;
  if (job().rank() == 0)
    log_warning(fmt::format(
        "the loss was exactly 0 in each of the first {} steps: there is nothing to learn from it. Are all "
        "weights of the samples or of their classes 0, or all labels masked?",
        steps_));
}

}  // namespace mox::internal
