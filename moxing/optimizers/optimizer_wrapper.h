// Optimizer wrappers: functions that take an OptimizerFn and give one that does something more.
//
//   const auto clip = mox::get_optimizer_wrapper_fn("clip_by_global_norm", {.limit = 1.0});
//   mox::run({..., .optimizer_fn = clip(mox::get_optimizer_fn("adam")), ...});
//
// A gradient passes the outermost wrapper first and the update rule last.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/optimizers/optimizer.h"

namespace mox {

using OptimizerWrapperFn = std::function<OptimizerFn(OptimizerFn)>;

struct OptimizerWrapperOptions {
  std::optional<double> limit = {};  // clip_by_value, clip_by_global_norm: must be given; > 0
};

// The wrapper of that name:
//   clip_by_value        each element of each gradient to [-limit, limit]
//   clip_by_global_norm  all gradients by one factor, so that the norm of all of them together is at most
//                        `limit`. No update can then begin before the last gradient is final.
// Both act on the gradient of the loss, before weight decay is added. The global norm is that of the
// gradients as the backward pass left them, so clip_by_global_norm must be outside of clip_by_value; the
// other order is refused with InvalidArgument when the optimizer is made. Throws InvalidArgument for an
// unknown name, and for a limit that is missing or out of range.
OptimizerWrapperFn get_optimizer_wrapper_fn(std::string_view name, OptimizerWrapperOptions options = {});

// The names that get_optimizer_wrapper_fn knows, sorted.
std::vector<std::string> optimizer_wrapper_names();

// For wrappers of your own: forwards everything to the wrapped optimizer but is_elementwise, which speaks of
// your `apply`, too; override what differs.
class OptimizerWrapper : public Optimizer {
 public:
  // Throws InvalidArgument if `wrapped` is null.
  explicit OptimizerWrapper(std::unique_ptr<Optimizer> wrapped);

  std::string_view name() const override { return wrapped_->name(); }
  std::string description() const override { return wrapped_->description(); }
  std::vector<SlotSpec> slots() const override { return wrapped_->slots(); }
  double learning_rate(int64_t step, double steps_per_epoch) const override {
    return wrapped_->learning_rate(step, steps_per_epoch);
  }
  bool needs_steps_per_epoch() const override { return wrapped_->needs_steps_per_epoch(); }
  ParameterSettings parameter_settings(std::string_view variable, const Shape& shape) const override {
    return wrapped_->parameter_settings(variable, shape);
  }
  void check_variables(std::span<const TrainableVariable> variables) const override {
    wrapped_->check_variables(variables);
  }
  std::optional<double> global_norm_limit() const override { return wrapped_->global_norm_limit(); }
  void apply(const ParameterUpdate& update, const Team& team) const override {
    wrapped_->apply(update, team);
  }

 protected:
  const Optimizer& wrapped() const { return *wrapped_; }

 private:
  std::unique_ptr<Optimizer> wrapped_;
};

}  // namespace mox
