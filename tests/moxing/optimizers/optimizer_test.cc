#include "moxing/optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "moxing/optimizers/optimizer_wrapper.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "tests/support/message_of.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// One variable with its slots, updated with given gradients.
struct Variable {
  Variable(const Optimizer& optimizer, std::vector<float> initial) : value(std::move(initial)) {
    for (const SlotSpec& slot : optimizer.slots()) storage.emplace_back(value.size(), slot.initial_value);
    for (auto& slot : storage) slots.emplace_back(slot);
  }
  ParameterUpdate update(const std::vector<float>& gradient, double rate, int64_t step) {
    return {.name = "W",
            .value = value,
            .gradient = gradient,
            .slots = slots,
            .learning_rate = rate,
            .step = step};
  }
  std::vector<float> value;
  std::vector<std::vector<float>> storage;
  std::vector<std::span<float>> slots;
};

TEST(Optimizer, TheOptionsOfTheFirstProgram) {
  const auto optimizer = get_optimizer_fn("sgd", {.learning_rate = 0.5})();
  EXPECT_EQ(optimizer->name(), "sgd");
  EXPECT_EQ(optimizer->learning_rate(10, 0), 0.5);
  Variable variable(*optimizer, {1, 2});
  const std::vector<float> gradient = {1, -4};
  optimizer->apply(variable.update(gradient, 0.5, 1), Team(1));
  EXPECT_EQ(variable.value, (std::vector<float>{0.5f, 4}));
}

TEST(Optimizer, AnUnknownNameNamesTheNearest) {
  const std::string error = message_of<InvalidArgument>([] { get_optimizer_fn("adma"); });
  EXPECT_THAT(error, HasSubstr("unknown optimizer \"adma\": did you mean \"adam\"?"));
  EXPECT_THAT(error, HasSubstr(fmt::format("{}", fmt::join(optimizer_names(), ", "))));
  EXPECT_EQ(message_of<InvalidArgument>([] { get_optimizer_fn("something else"); }).find("did you mean"),
            std::string::npos);
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn(std::string(100000, 'a')); }), "");
}

TEST(Optimizer, OptionsThatAreNotUsedAreRefused) {
  const std::string error = message_of<InvalidArgument>([] { get_optimizer_fn("sgd", {.momentum = 0.9}); });
  EXPECT_THAT(error, HasSubstr("\"sgd\" does not use the option momentum (used by: momentum, rmsprop)"));
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("adam", {.nesterov = true}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("momentum", {.beta1 = 0.9}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("adagrad", {.l1_regularization = 0}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("ftrl", {.epsilon = 1e-8}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("adadelta", {.centered = false}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("sgd", {.rho = 0.9}); }), "");
}

TEST(Optimizer, RangesAreChecked) {
  EXPECT_THAT(message_of<InvalidArgument>([] { get_optimizer_fn("momentum", {.momentum = 1.0}); }),
              HasSubstr("momentum must be in [0, 1), got 1"));
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("sgd", {.learning_rate = -0.1}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("sgd", {.weight_decay = -1e-4}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("sgd", {.weight_decay = std::nan("")}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("adam", {.beta2 = -0.1}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("adam", {.epsilon = 0}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("ftrl", {.initial_accumulator = 0}); }), "");
  EXPECT_NE(message_of<InvalidArgument>([] { get_optimizer_fn("ftrl", {.l2_regularization = -1}); }), "");
  EXPECT_NO_THROW(get_optimizer_fn("adagrad", {.initial_accumulator = 0}));
  EXPECT_NE(message_of<InvalidArgument>(
                [] { get_optimizer_fn("sgd", {.parameter_groups = {{.name = "no predicate"}}}); }),
            "");
}

TEST(Optimizer, ANegativeRateOfTheScheduleIsReportedWhenItComes) {
  const auto optimizer = get_optimizer_fn("sgd", {.learning_rate = polynomial_decay(0.1, 10, -0.1)})();
  EXPECT_NEAR(optimizer->learning_rate(4, 0), 0.02, 1e-12);
  EXPECT_THAT(message_of<InvalidArgument>([&] { optimizer->learning_rate(6, 0); }), HasSubstr("at step 6"));
}

// Of two groups that match a variable the first decides: a special one behind a general one does nothing.
TEST(Optimizer, AGroupBehindOneThatTakesAllOfItsVariablesIsRefused) {
  const std::vector<TrainableVariable> variables = {
      {"head/kernel", {4, 2}}, {"head/bias", {2}}, {"body/kernel", {4, 4}}};
  const auto group = [](const std::string& name) {
    return ParameterGroup{.name = name, .matches = [=](std::string_view variable, const Shape&) {
                            return variable.find(name) != std::string_view::npos;
                          }};
  };
  const auto refusal_of = [&](const OptimizerOptions& options) {
    return message_of<InvalidArgument>(
        [&] { get_optimizer_fn("sgd", options)()->check_variables(variables); });
  };
  EXPECT_THAT(refusal_of({.parameter_groups = {no_weight_decay_on_vectors(), group("head/bias")}}),
              AllOf(HasSubstr("the parameter group \"head/bias\" would do nothing"),
                    HasSubstr("the parameter group \"vectors\", which comes before, has 'head/bias'")));
  EXPECT_THAT(
      refusal_of({.parameter_overrides = {{.pattern = "head/*", .weight_decay = 0},
                                          {.pattern = "head/k*", .weight_decay = 1}}}),
      AllOf(HasSubstr("'head/k*' of a parameter group would do nothing"), HasSubstr("'head/kernel'")));
  const OptimizerOptions in_order{
      .parameter_groups = {group("head/bias"), group("head"), no_weight_decay_on_vectors()},
      .parameter_overrides = {{.pattern = "head/k*", .weight_decay = 1},
                              {.pattern = "head/*", .weight_decay = 0}}};
  EXPECT_NO_THROW(get_optimizer_fn("sgd", in_order)()->check_variables(variables));
}

TEST(Optimizer, BiasesAreNotDecayedUnlessAsked) {
  const auto optimizer = get_optimizer_fn("sgd", {.weight_decay = 0.01})();
  EXPECT_EQ(optimizer->parameter_settings("W", {784, 10}).weight_decay, 0.01);
  EXPECT_EQ(optimizer->parameter_settings("b", {10}).weight_decay, 0);
  EXPECT_EQ(optimizer->parameter_settings("scale", {}).weight_decay, 0);
  const auto all = get_optimizer_fn("sgd", {.weight_decay = 0.01, .parameter_groups = {}})();
  EXPECT_EQ(all->parameter_settings("b", {10}).weight_decay, 0.01);
}

TEST(Optimizer, TheFirstMatchingGroupDecides) {
  const auto in_head = [](std::string_view name, const Shape&) { return name.starts_with("head/"); };
  const auto optimizer = get_optimizer_fn(
      "sgd", {.weight_decay = 0.01,
              .parameter_groups = {{.name = "head", .matches = in_head, .learning_rate_multiplier = 10},
                                   no_weight_decay_on_vectors()}})();
  const ParameterSettings head = optimizer->parameter_settings("head/b", {10});
  EXPECT_EQ(head.group, "head");
  EXPECT_EQ(head.learning_rate_multiplier, 10);
  EXPECT_EQ(head.weight_decay, 0.01);
  EXPECT_EQ(optimizer->parameter_settings("body/b", {10}).weight_decay, 0);
  EXPECT_EQ(optimizer->parameter_settings("body/b", {10}).learning_rate_multiplier, 1);
}

TEST(Optimizer, GradientsAreScaledThenClippedThenDecayed) {
  const auto optimizer = get_optimizer_fn("sgd", {})();
  Variable variable(*optimizer, {1, 1, 1});
  const std::vector<float> gradient = {4, -8, 1};
  auto update = variable.update(gradient, 1, 1);
  update.gradient_scale = 0.5;
  update.clip_value = 3;
  update.weight_decay = 0.25;
  optimizer->apply(update, Team(1));
  EXPECT_EQ(variable.value, (std::vector<float>{1 - 2.25f, 1 + 2.75f, 1 - 0.75f}));
}

class EveryOptimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizer, IsBitwiseIndependentOfTheTeam) {
  const auto optimizer = get_optimizer_fn(GetParam(), {.learning_rate = 0.01})();
  constexpr size_t kSize = 100003;  // not a multiple of any vector width, so chunk borders fall anywhere
  std::vector<float> initial(kSize), gradient(kSize);
  RandomStream(1, 2).fill_normal(initial, 0, 0, 1);
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 3, 5}) {
    Variable variable(*optimizer, initial);
    for (int64_t step = 1; step <= 3; ++step) {
      RandomStream(1, 10 + static_cast<uint64_t>(step)).fill_normal(gradient, 0, 0, 1);
      auto update = variable.update(gradient, 0.01, step);
      update.weight_decay = 1e-3;
      update.gradient_scale = 0.7;
      optimizer->apply(update, Team(threads));
    }
    EXPECT_NE(variable.value, initial);
    results.push_back(variable.value);
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

// As gradients that come in parts need it: is_elementwise() is a promise.
TEST_P(EveryOptimizer, TakesAVariableInPartsWithTheSameBits) {
  const auto optimizer =
      get_optimizer_wrapper_fn("clip_by_value", {.limit = 0.5})(get_optimizer_fn(GetParam()))();
  ASSERT_TRUE(optimizer->is_elementwise());
  constexpr size_t kElements = 1000;
  std::vector<float> initial(kElements), gradient(kElements);
  RandomStream(1, 1).fill_normal(initial, 0, 0, 1);
  RandomStream(1, 2).fill_normal(gradient, 0, 0, 1);
  Variable whole(*optimizer, initial), cut(*optimizer, initial);
  for (int64_t step = 1; step <= 3; ++step) {
    optimizer->apply(whole.update(gradient, 0.1, step), Team(1));
    for (auto [first, count] : {std::pair<size_t, size_t>{0, 333}, {333, 16}, {349, 651}}) {
      ParameterUpdate part = cut.update(gradient, 0.1, step);
      std::vector<std::span<float>> slots;
      for (std::span<float> slot : cut.slots) slots.push_back(slot.subspan(first, count));
      part.value = part.value.subspan(first, count);
      part.gradient = part.gradient.subspan(first, count);
      part.slots = slots;
      optimizer->apply(part, Team(1));
    }
  }
  EXPECT_EQ(whole.value, cut.value);
  EXPECT_EQ(whole.storage, cut.storage);
}

TEST_P(EveryOptimizer, KeepsNaNsInsteadOfHidingThem) {
  const auto optimizer = get_optimizer_fn(GetParam(), {})();
  const std::vector<float> gradient(40, std::numeric_limits<float>::quiet_NaN());
  Variable variable(*optimizer, std::vector<float>(40, 1.0f));
  auto update = variable.update(gradient, 0.01, 1);
  update.clip_value = 1;
  optimizer->apply(update, Team(1));
  for (float value : variable.value) EXPECT_TRUE(std::isnan(value));
}

TEST_P(EveryOptimizer, ARateOfZeroLeavesTheValue) {
  const auto optimizer = get_optimizer_fn(GetParam(), {})();
  const std::vector<float> gradient(20, 0.5f);
  Variable variable(*optimizer, std::vector<float>(20, 1.0f));
  optimizer->apply(variable.update(gradient, 0, 1), Team(1));
  EXPECT_EQ(variable.value, std::vector<float>(20, 1.0f));
}

TEST_P(EveryOptimizer, UpdatesAnEmptyVariable) {
  const auto optimizer = get_optimizer_fn(GetParam(), {})();
  Variable variable(*optimizer, {});
  optimizer->apply(variable.update({}, 0.1, 1), Team(2));
  EXPECT_TRUE(variable.value.empty());
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, ::testing::ValuesIn(optimizer_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mox
