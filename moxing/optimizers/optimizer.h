// Optimizers: how a variable changes, given its gradient.
//
// An optimizer works on one variable at a time, in host memory, as soon as that variable's gradient is final,
// while the rest of the backward pass still runs; it reads and writes each parameter once. It has no state of
// its own: all that it remembers lies in the variable's slots (arrays of the variable's shape, saved with it)
// and in the step number, so a resumed run is exact. Results are bitwise the same for any number of threads.
//
//   get_optimizer_fn("sgd", {.learning_rate = 0.5})
//   get_optimizer_fn("momentum", {.learning_rate = "30:0.1,60:0.01", .weight_decay = 1e-4, .momentum = 0.9})
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moxing/optimizers/parameter_group.h"
#include "moxing/schedules/schedule.h"
#include "runtime/base/team.h"
#include "runtime/tensor/shape.h"

namespace mox {

// One array that an optimizer keeps beside each variable: float32, of the variable's shape.
struct SlotSpec {
  std::string name = {};  // unique within the optimizer, for example "momentum"; part of the checkpoint's key
  float initial_value = 0;  // of every element
};

// One update of one variable. All spans have the same number of elements, do not overlap, and stay owned by
// the caller.
struct ParameterUpdate {
  std::string_view name = {};                    // of the variable, for messages
  std::span<float> value = {};                   // read and written
  std::span<const float> gradient = {};          // of the loss, as the backward pass left it
  std::span<const std::span<float>> slots = {};  // read and written; in the order of Optimizer::slots()
  double learning_rate = 0;                      // Optimizer::learning_rate() times the variable's multiplier
  // The number of this update. 1 for the first that the slots see, which is a later one of the run where the
  // variable was frozen until then; without slots for the first of the run.
  int64_t step = 1;
  // The rules see clamp(gradient * gradient_scale, -clip_value, clip_value); NaN stays NaN.
  double gradient_scale = 1;  // from clipping by the global norm and from loss scaling
  double clip_value = std::numeric_limits<double>::infinity();
  double weight_decay = 0;  // ParameterSettings::weight_decay; acts after the clipping
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual std::string_view name() const = 0;
  // One line with all settings, the same for equal optimizers: for the log, and for comparing ranks.
  virtual std::string description() const = 0;
  virtual std::vector<SlotSpec> slots() const = 0;

  // The learning rate of the step that comes after `step` others (see Schedule::value, also for errors).
  virtual double learning_rate(int64_t step, double steps_per_epoch) const = 0;
  virtual bool needs_steps_per_epoch() const = 0;

  // What the parameter groups say of a variable. Asked once a variable, when the model is compiled.
  virtual ParameterSettings parameter_settings(std::string_view variable, const Shape& shape) const = 0;

  // Asked once, with all trainable variables of the model, before the first step: throws InvalidArgument for
  // a parameter group that none of them belongs to.
  virtual void check_variables(std::span<const TrainableVariable> /*variables*/) const {}

  // If set, the caller computes the global norm of all gradients before the first `apply` of a step (the
  // updates can then not overlap the backward pass) and multiplies gradient_scale by `clipping_scale(norm,
  // limit)` (gradient_clipping.h).
  virtual std::optional<double> global_norm_limit() const { return std::nullopt; }

  // Whether `apply` treats each element by itself, from nothing but the update's elements and numbers, so
  // that it may be given a part of a variable at a time (all spans cut alike; several parts from different
  // threads at once).
  virtual bool is_elementwise() const { return false; }

  // Updates one variable. Different variables may be updated from different threads at the same time.
  // No allocation, no exception; a non-finite gradient gives a non-finite value, which the NaN guard reports.
  virtual void apply(const ParameterUpdate& update, const Team& team) const = 0;
};

// Makes the optimizer of a run.
using OptimizerFn = std::function<std::unique_ptr<Optimizer>()>;

// Settings of the built-in optimizers. Those without a value here have a default that the optimizer's own
// documentation states (docs/optimizers.md); one that the named optimizer does not use must not be set.
struct OptimizerOptions {
  Schedule learning_rate = 0.01;  // >= 0 at every step
  // Added to the gradient as weight_decay * value (L2), except for adamw: it takes learning_rate *
  // weight_decay * value off the variable itself. >= 0.
  double weight_decay = 0;
  // The first group that matches a variable decides. Giving groups replaces the default one.
  std::vector<ParameterGroup> parameter_groups = default_parameter_groups();
  // What goes before the groups, by patterns of names (the option optimizer.groups).
  std::vector<ParameterOverride> parameter_overrides = {};
  std::optional<double> momentum = {};  // momentum (0.9), rmsprop (0); in [0, 1)
  std::optional<bool> nesterov = {};    // momentum (false)
  std::optional<double> beta1 = {};     // adam, adamw (0.9): decay of the gradient's mean; in [0, 1)
  std::optional<double> beta2 = {};    // adam, adamw (0.999): decay of the squared gradient's mean; in [0, 1)
  std::optional<double> rho = {};      // adadelta (0.95), rmsprop (0.9): decay of the squared gradient's mean
  std::optional<double> epsilon = {};  // adam, adamw, rmsprop (1e-8), adagrad (1e-10), adadelta (1e-6); > 0
  std::optional<bool> centered = {};   // rmsprop (false): divide by the standard deviation
  // adagrad, ftrl (0.1): where the sum of squared gradients begins; >= 0, for ftrl > 0
  std::optional<double> initial_accumulator = {};
  std::optional<double> l1_regularization = {};  // ftrl (0); >= 0
  std::optional<double> l2_regularization = {};  // ftrl (0); >= 0
};

// The optimizer of that name, one of moxing/config/optimizer_rows.h (sgd, momentum, adam ...).
// Everything is checked here, not when the run starts. Throws InvalidArgument for an unknown name (naming the
// nearest known one), for an option that the optimizer does not use, and for a value out of its range.
OptimizerFn get_optimizer_fn(std::string_view name, OptimizerOptions options = {});

// The names that get_optimizer_fn knows, sorted.
std::vector<std::string> optimizer_names();

// The optimizer itself: gradients are summed over all ranks whatever the optimizer. For programs that come
// from Horovod and wrap theirs.
std::unique_ptr<Optimizer> distributed(std::unique_ptr<Optimizer> optimizer);
OptimizerFn distributed(OptimizerFn optimizer_fn);

}  // namespace mox
