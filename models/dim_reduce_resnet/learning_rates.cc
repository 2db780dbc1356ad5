#include "models/dim_reduce_resnet/learning_rates.h"

#include <moxing/moxing.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

namespace dim_reduce_resnet {
namespace {

class GeneratedRates : public mox::ScheduleFunction {
 public:
  explicit GeneratedRates(LearningRates options) : options_(std::move(options)) {}

  double value(int64_t step, double steps_per_epoch) const override {
    const double total = std::max(1.0, std::floor(options_.epochs * steps_per_epoch));
    const double warm_up = std::floor(options_.warm_up_epochs * steps_per_epoch);
    const double t = std::min(static_cast<double>(step), total - 1);
    if (options_.decay == "steps") return of_steps(t / total);
    if (t < warm_up) {
      const double done = (options_.decay == "cosine" ? t + 1 : t) / warm_up;
      return options_.initial + (options_.highest - options_.initial) * done;
    }
    const double done = (t - warm_up) / (total - warm_up);
    if (options_.decay == "poly") return options_.highest * (1 - done) * (1 - done);
    const double left = options_.decay == "cosine" ? (1 + std::cos(std::numbers::pi * done)) / 2 : 1 - done;
    return options_.last + (options_.highest - options_.last) * left;
  }
  bool needs_steps_per_epoch() const override { return true; }
  std::string description() const override {
    return options_.decay + " decay from " + std::to_string(options_.highest) + " over " +
           std::to_string(options_.epochs) + " epochs";
  }

 private:
  double of_steps(double part) const {
    return options_.highest * (part < 0.3 ? 1 : part < 0.6 ? 0.1 : part < 0.8 ? 0.01 : 0.001);
  }

  LearningRates options_;
};

}  // namespace

mox::Schedule learning_rates(const LearningRates& options) {
  const std::string& decay = options.decay;
  if (decay != "steps" && decay != "poly" && decay != "cosine" && decay != "linear")
    throw mox::InvalidArgument("lr_decay_mode is '" + decay + "'; it is one of steps, poly, cosine, linear");
  if (options.initial < 0 || options.highest < 0 || options.last < 0 || options.warm_up_epochs < 0)
    throw mox::InvalidArgument("lr_init, lr_max, lr_end and warmup_epochs must be at least 0");
  if (decay == "steps" && options.warm_up_epochs > 0)
    throw mox::InvalidArgument(
        "lr_decay_mode steps has no warm-up: set warmup_epochs to 0, or take another one");
  if (options.warm_up_epochs >= options.epochs)
    throw mox::InvalidArgument("warmup_epochs is " + std::to_string(options.warm_up_epochs) +
                               ", but the whole training has " + std::to_string(options.epochs) +
                               " epochs (epoch_size)");
  return mox::Schedule(std::make_shared<GeneratedRates>(options));
}

}  // namespace dim_reduce_resnet
