// A run that is small enough to follow by hand, for tests of what happens around the steps.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "moxing/config/init.h"
#include "moxing/engine/session/run.h"
#include "moxing/hooks/hook.h"
#include "moxing/model/variables.h"
#include "ops/ops.h"
#include "tests/moxing/checkpoint/checkpoint_samples.h"
#include "tests/support/larger.h"
#include "tests/support/message_of.h"

namespace mox {

// Calls what it is given; everything else is as Hook does it.
struct CallbackHook : Hook {
  std::function<void(ModelBuild&)> on_begin = {};
  std::function<void(Session&)> on_create = {}, on_before = {}, on_end = {};
  std::function<void(Session&, const StepResult&)> on_after = {};
  std::function<void(Session&, const Metrics&)> on_evaluation = {};

  void begin(ModelBuild& build) override {
    if (on_begin) on_begin(build);
  }
  void after_create_session(Session& session) override {
    if (on_create) on_create(session);
  }
  void before_run(Session& session) override {
    if (on_before) on_before(session);
  }
  void after_run(Session& session, const StepResult& result) override {
    if (on_after) on_after(session, result);
  }
  void after_evaluation(Session& session, const Metrics& metrics) override {
    if (on_evaluation) on_evaluation(session, metrics);
  }
  void end(Session& session) override {
    if (on_end) on_end(session);
  }
};

inline std::shared_ptr<Hook> before_run_hook(std::function<void(Session&)> call) {
  auto hook = std::make_shared<CallbackHook>();
  hook->on_before = std::move(call);
  return hook;
}
inline std::shared_ptr<Hook> after_run_hook(std::function<void(Session&, const StepResult&)> call) {
  auto hook = std::make_shared<CallbackHook>();
  hook->on_after = std::move(call);
  return hook;
}

// One component: the numbers 0, 1, 2, ... as float32 [samples, 1].
inline Dataset counting_data(int64_t samples) {
  Array x(DType::kFloat32, {samples, 1});
  for (int64_t i = 0; i < samples; ++i) x.values<float>()[i] = static_cast<float>(i);
  return Dataset::from_arrays({x});
}

// The gradient of the variable "w" (which begins at 0) is 1 in every step; "mean" is the mean of the batch.
inline ModelSpec constant_slope_model(const Inputs& in, ModeKeys) {
  const Tensor w = get_variable("w", {}, zeros());
  return {.loss = w + reduce_sum(in[0]) * 0.0f,
          .log_info = {{"loss", w + 0.0f}, {"mean", reduce_mean(in[0])}}};
}

// A run of a model with one weight, for tests of what lies beside the weights.
inline RunSpec one_weight_run(const std::string& log_dir, int64_t steps) {
  return {.input_fn =
              [](ModeKeys) {
                return Dataset::from_arrays({Array(DType::kFloat32, {4, 1})}).repeat();
              },
          .model_fn = [](const Inputs& in, ModeKeys) -> ModelSpec {
            return {.loss = reduce_mean(in[0] * get_variable("w", {1}))};
          },
          .optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 0.1}),
          .log_dir = log_dir,
          .max_number_of_steps = steps,
          .log_every_n_steps = 0};
}

// The text of the error of this type with which a run ends.
template <typename Expected>
std::string message_of_run(const RunSpec& spec) {
  return message_of<Expected>([&] { run_or_throw(spec); });
}

// 30 steps with momentum over 50 samples in batches of 8, so that batches cross the borders of epochs.
inline RunSpec momentum_run(std::vector<Array> samples, ModelFn model_fn, const std::string& log_dir) {
  return {.input_fn =
              [samples = std::move(samples)](ModeKeys mode) {
                auto data = Dataset::from_arrays(samples);
                return mode == ModeKeys::TRAIN ? data.shuffle(50).repeat() : data;
              },
          .model_fn = std::move(model_fn),
          .optimizer_fn = get_optimizer_fn("momentum", {.learning_rate = 0.1, .momentum = 0.9}),
          .batch_size = 8,
          .log_dir = log_dir,
          .max_number_of_steps = 30,
          .log_every_n_steps = 0,
          .save_model_secs = 0};
}

// Between the variables of two runs of one model.
inline double largest_difference(const Checkpoint& a, const Checkpoint& b) {
  double largest = 0;
  EXPECT_EQ(a.variables.size(), b.variables.size());
  for (size_t v = 0; v < std::min(a.variables.size(), b.variables.size()); ++v) {
    EXPECT_EQ(a.variables[v].name, b.variables[v].name);
    const auto left = a.variables[v].value.values<float>(), right = b.variables[v].value.values<float>();
    for (size_t i = 0; i < left.size(); ++i)
      largest = test::larger(largest, std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i])));
  }
  return largest;
}

class SmallRun : public ::testing::Test {
 protected:
  // Ten samples in batches of two without end: an epoch has five steps; SGD at a rate of 1, so that w falls
  // by the rate in each step.
  RunSpec spec() {
    return {.input_fn =
                [](ModeKeys mode) {
                  return mode == ModeKeys::TRAIN ? counting_data(10).repeat() : counting_data(4);
                },
            .model_fn = constant_slope_model,
            .optimizer_fn = get_optimizer_fn("sgd", {.learning_rate = 1}),
            .batch_size = 2,
            .log_dir = log_dir_,
            .max_number_of_steps = 4,
            .log_every_n_steps = 0,
            .save_summary_steps = 0,
            .save_model_secs = 0};
  }

  // The value of a variable in the checkpoint of log_dir.
  Array saved(const std::string& name) const {
    for (const NamedArray& variable : load_checkpoint(log_dir_).variables)
      if (variable.name == name) return variable.value;
    ADD_FAILURE() << "the checkpoint has no '" << name << "'";
    return Array::scalar(0.0f);
  }

  ScopedConfiguration configuration_{std::vector<std::string>{"--threads=1", "--log_level=error"}};
  std::string log_dir_ = fresh_directory("small_run");
};

}  // namespace mox
