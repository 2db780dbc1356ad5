// Every update rule against the values of an
// independent implementation (tests/fixtures/make_optimizer_fixtures.py).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "moxing/optimizers/gradient_clipping.h"
#include "moxing/optimizers/optimizer.h"
#include "moxing/optimizers/optimizer_wrapper.h"
#include "runtime/base/file.h"

namespace mox {
namespace {

using Json = nlohmann::json;

const Json& fixtures() {
  static const Json document =
      Json::parse(read_file(MOX_SOURCE_DIR "/tests/fixtures/optimizer_fixtures.json"));
  return document;
}

OptimizerFn optimizer_fn_of(const Json& fixture) {
  OptimizerOptions options;
  OptimizerWrapperFn wrapper = [](OptimizerFn inner) { return inner; };
  for (const auto& [key, value] : fixture["options"].items()) {
    if (key == "weight_decay")
      options.weight_decay = value;
    else if (key == "momentum")
      options.momentum = value.get<double>();
    else if (key == "nesterov")
      options.nesterov = value.get<bool>();
    else if (key == "beta1")
      options.beta1 = value.get<double>();
    else if (key == "beta2")
      options.beta2 = value.get<double>();
    else if (key == "rho")
      options.rho = value.get<double>();
    else if (key == "epsilon")
      options.epsilon = value.get<double>();
    else if (key == "centered")
      options.centered = value.get<bool>();
    else if (key == "initial_accumulator")
      options.initial_accumulator = value.get<double>();
    else if (key == "l1_regularization")
      options.l1_regularization = value.get<double>();
    else if (key == "l2_regularization")
      options.l2_regularization = value.get<double>();
    else if (key.starts_with("clip_by_"))
      wrapper = get_optimizer_wrapper_fn(key, {.limit = value.get<double>()});
    else
      ADD_FAILURE() << "the fixture has an option that the test does not know: " << key;
  }
  return wrapper(get_optimizer_fn(fixture["optimizer"].get<std::string>(), options));
}

TEST(OptimizerValues, AgreeWithAnIndependentImplementation) {
  const std::vector<double> rates = fixtures()["rates"];
  const std::vector<std::vector<float>> gradients = fixtures()["gradients"];
  ASSERT_GE(rates.size(), 5u);
  std::set<std::string> seen;
  for (const Json& fixture : fixtures()["cases"]) {
    SCOPED_TRACE(fixture["optimizer"].get<std::string>() + " " + fixture["options"].dump());
    seen.insert(fixture["optimizer"].get<std::string>());
    const auto optimizer = optimizer_fn_of(fixture)();
    std::vector<float> value = fixtures()["initial"];
    std::vector<std::vector<float>> storage;
    for (const SlotSpec& slot : optimizer->slots()) storage.emplace_back(value.size(), slot.initial_value);
    const std::vector<std::span<float>> slots(storage.begin(), storage.end());
    const double weight_decay = optimizer->parameter_settings("W", {11, 1}).weight_decay;
    for (size_t i = 0; i < rates.size(); ++i) {
      ParameterUpdate update{.name = "W",
                             .value = value,
                             .gradient = gradients[i],
                             .slots = slots,
                             .learning_rate = rates[i],
                             .step = static_cast<int64_t>(i) + 1,
                             .weight_decay = weight_decay};
      if (const auto limit = optimizer->global_norm_limit()) {
        const std::vector<double> sums = {sum_of_squares(gradients[i], Team(1))};
        update.gradient_scale = clipping_scale(global_norm(sums), *limit);
      }
      optimizer->apply(update, Team(1));
      const std::vector<double> expected = fixture["values"][i];
      for (size_t j = 0; j < value.size(); ++j)
        EXPECT_NEAR(value[j], expected[j], 2e-6 * std::max(1.0, std::fabs(expected[j])))
            << "step " << i + 1 << ", element " << j;
    }
  }
  const std::vector<std::string> names = optimizer_names();
  EXPECT_EQ(seen, std::set<std::string>(names.begin(), names.end())) << "every optimizer has a fixture";
}

TEST(OptimizerValues, EachHasARowInTheDocumentation) {
  const std::string page = read_file(MOX_SOURCE_DIR "/docs/optimizers.md");
  for (const std::string& name : optimizer_names())
    EXPECT_NE(page.find("\n| `" + name + "` |"), std::string::npos) << name;
}

// The slots' meaning is part of the checkpoint's format: the order and the names stay.
TEST(OptimizerValues, SlotsKeepTheirNames) {
  const auto slots_of = [](const OptimizerFn& make) {
    std::string names;
    for (const SlotSpec& slot : make()->slots()) names += slot.name + " ";
    return names;
  };
  EXPECT_EQ(slots_of(get_optimizer_fn("sgd")), "");
  EXPECT_EQ(slots_of(get_optimizer_fn("momentum")), "momentum ");
  EXPECT_EQ(slots_of(get_optimizer_fn("adam")), "mean variance ");
  EXPECT_EQ(slots_of(get_optimizer_fn("adamw")), "mean variance ");
  EXPECT_EQ(slots_of(get_optimizer_fn("adagrad")), "accumulator ");
  EXPECT_EQ(slots_of(get_optimizer_fn("adadelta")), "square square_delta ");
  EXPECT_EQ(slots_of(get_optimizer_fn("rmsprop")), "square ");
  EXPECT_EQ(slots_of(get_optimizer_fn("rmsprop", {.momentum = 0.9, .centered = true})),
            "square mean momentum ");
  EXPECT_EQ(slots_of(get_optimizer_fn("ftrl")), "accumulator linear ");
}

TEST(OptimizerValues, AdamIsFiniteAfterVeryManySteps) {
  const auto optimizer = get_optimizer_fn("adam")();
  std::vector<float> value = {1}, mean = {0.1f}, variance = {0.01f};
  const std::vector<float> gradient = {0.1f};
  const std::vector<std::span<float>> slots = {mean, variance};
  optimizer->apply(
      {.value = value, .gradient = gradient, .slots = slots, .learning_rate = 0.01, .step = int64_t{1} << 60},
      Team(1));
  EXPECT_NEAR(value[0], 0.99, 1e-6);
}

TEST(OptimizerValues, CenteredRmsPropSurvivesANegativeVariance) {
  // With a constant gradient, square - mean^2 tends to 0 and rounding can take it below; here
  // it starts below.
  const auto optimizer = get_optimizer_fn("rmsprop", {.centered = true})();
  std::vector<float> value = {1}, square = {0.0899f}, mean = {0.3f};
  const std::vector<float> gradient = {0.3f};
  const std::vector<std::span<float>> slots = {square, mean};
  optimizer->apply({.value = value, .gradient = gradient, .slots = slots, .learning_rate = 1e-12}, Team(1));
  EXPECT_LT(square[0] - mean[0] * mean[0], 0);
  EXPECT_TRUE(std::isfinite(value[0]));
}

}  // namespace
}  // namespace mox
