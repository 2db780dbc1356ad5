// What becomes of a sum that is delivered to a step.
#include "moxing/engine/step/update_gate.h"

#include <gtest/gtest.h>

#include <limits>

#include "moxing/config/init.h"
#include "moxing/model/variables.h"
#include "ops/ops.h"
#include "runtime/graph/graph.h"

namespace mox {
namespace {

using internal::UpdateGate;

// Two variables of four elements, all zero, and SGD at a rate of 1: what is applied stands in them with the
// sign turned.
class UpdateGateTest : public ::testing::Test {
 protected:
  UpdateGateTest() {
    Graph graph;
    {
      const GraphScope scope(graph);
      for (const char* name : {"a", "b"}) get_variable(name, {4}, zeros());
    }
    store_.declare(graph);
  }

  // `loss_scale` as in the option of that name: where it is not 1, a step needs all gradients.
  UpdateGate gate(const NumberOrString& loss_scale = 1.0,
                  internal::UpdateScheme scheme = internal::UpdateScheme::kReplicatedHost) {
    scheme_ = internal::make_variable_scheme(
        scheme, store_, 1, alone_, [&](internal::ParameterUpdater::VariableOf variable, bool) {
          return std::make_unique<internal::ParameterUpdater>(get_optimizer_fn("sgd", {.learning_rate = 1})(),
                                                              std::move(variable), internal::KeptOptimizer(),
                                                              team_, internal::LossScale(loss_scale, {}));
        });
    const std::vector<std::string> names{"a", "b"};
    targets_ = {.parameters = scheme_->declare(names), .elements = {4, 4}, .after_step = {"b"}};
    scheme_->begin_step({});
    return UpdateGate(*scheme_, lanes_, team_, true);
  }
  internal::SumRange all(size_t index) { return {index, 0, std::span(sums_).subspan(4 * index, 4)}; }
  float a(size_t element) const { return store_.get("a").values<float>()[element]; }
  float b(size_t element) const { return store_.get("b").values<float>()[element]; }

  ScopedConfiguration configuration_{std::vector<std::string>{"--threads=1", "--log_level=error"}};
  const Team team_{1};
  VariableStore store_{0};
  Communicator alone_;
  internal::LaneThreads lanes_{1, team_};
  std::unique_ptr<internal::VariableScheme> scheme_;
  UpdateGate::Targets targets_;
  std::vector<float> sums_{1, 2, 3, 4, 5, 6, 7, 8};
};

TEST_F(UpdateGateTest, ASumWaitsUntilItIsKnownOverHowManySamplesItIs) {
  UpdateGate gate = this->gate();
  gate.begin_step(targets_);
  gate.take_gradient(all(0));
  EXPECT_EQ(a(0), 0);
  gate.open(0.5);
  EXPECT_EQ(a(0), -0.5F);
  gate.take_gradient(all(1));
  EXPECT_EQ(b(3), -4) << "and is applied at once from then on";
  gate.finish_gradients();
  EXPECT_EQ(b(3), -4) << "once";
}

TEST_F(UpdateGateTest, PartsAreAppliedAsTheyCome) {
  UpdateGate gate = this->gate();
  gate.begin_step(targets_);
  gate.open(1);
  gate.take_gradient({0, 2, std::span(sums_).subspan(2, 2)});
  EXPECT_EQ(a(0), 0);
  EXPECT_EQ(a(2), -3);
}

TEST_F(UpdateGateTest, WhatNeedsAllGradientsWaitsForTheLast) {
  UpdateGate gate = this->gate(4.0);
  gate.begin_step(targets_);
  gate.open(1);
  gate.take_gradient(all(0));
  gate.take_gradient({1, 0, std::span(sums_).subspan(4, 2)});
  gate.take_gradient({1, 2, std::span(sums_).subspan(6, 2)});
  EXPECT_EQ(a(0), 0);
  gate.finish_gradients();
  EXPECT_EQ(a(0), -0.25F);
  EXPECT_EQ(b(3), -2);
}

// Seven replicas count steps: what all agree on is their mean, and three and a bit is no third step.
TEST_F(UpdateGateTest, TheMeanOfEqualAfterStepValuesIsTheValue) {
  for (const int replicas : {3, 7, 13, 14, 15, 30}) {
    UpdateGate gate = this->gate();
    std::vector<float> sums;
    for (const int step : {3, 5, 7, 11}) sums.push_back(static_cast<float>(replicas * step));
    gate.begin_step(targets_);
    gate.open(1.0 / replicas);
    gate.take_after_step_value({0, 0, sums});
    EXPECT_EQ((std::vector<float>{b(0), b(1), b(2), b(3)}), (std::vector<float>{3, 5, 7, 11})) << replicas;
  }
}

TEST_F(UpdateGateTest, AStepThatIsLeftOutChangesNothing) {
  UpdateGate gate = this->gate(std::string("dynamic"));
  sums_[1] = std::numeric_limits<float>::infinity();
  std::vector<float> average{9, 9, 9, 9};
  gate.begin_step(targets_);
  gate.open(1);
  for (const size_t index : {0, 1}) gate.take_gradient(all(index));
  gate.take_after_step_value({0, 0, average});
  gate.finish_gradients();
  gate.finish_after_step_values();
  EXPECT_TRUE(gate.left_out());
  EXPECT_EQ(a(0), 0);
  EXPECT_EQ(b(0), 0);

  sums_[1] = 2;
  gate.begin_step(targets_);
  gate.open(1);
  for (const size_t index : {0, 1}) gate.take_gradient(all(index));
  gate.take_after_step_value({0, 0, average});
  EXPECT_EQ(b(0), 0) << "the step may still be left out";
  gate.finish_gradients();
  gate.finish_after_step_values();
  EXPECT_FALSE(gate.left_out());
  EXPECT_LT(a(0), 0);
  EXPECT_EQ(b(0), 9);
}

TEST_F(UpdateGateTest, ARuleTakesTheOptimizersPlace) {
  UpdateGate gate = this->gate();
  std::vector<float> seen;
  gate.set_rule([&](std::span<const std::span<float>> gradients, double scale) {
    for (const auto& gradient : gradients) seen.push_back(gradient[1] * static_cast<float>(scale));
  });
  gate.begin_step(targets_);
  gate.open(10);
  for (const size_t index : {0, 1}) gate.take_gradient(all(index));
  EXPECT_TRUE(seen.empty());
  gate.finish_gradients();
  EXPECT_EQ(seen, (std::vector<float>{20, 60}));
  EXPECT_EQ(a(1), 0);
}

// It asks for the loss of the step's batch, which may depend on what the graph gives the variable afterwards.
TEST_F(UpdateGateTest, ARuleSeesTheVariablesAsTheyWereBeforeTheStep) {
  UpdateGate gate = this->gate();
  float seen = -1;
  gate.set_rule([&](std::span<const std::span<float>>, double) { seen = b(0); });
  std::vector<float> average{9, 9, 9, 9};
  gate.begin_step(targets_);
  gate.open(1);
  for (const size_t index : {0, 1}) gate.take_gradient(all(index));
  gate.take_after_step_value({0, 0, average});
  gate.finish_gradients();
  EXPECT_EQ(seen, 0);
  gate.finish_after_step_values();
  EXPECT_EQ(b(0), 9);
}

TEST_F(UpdateGateTest, AServersLanesReadCopies) {
  UpdateGate gate = this->gate(1.0, internal::UpdateScheme::kParameterServer);
  const Array copy = scheme_->of_lane(0, "a");
  gate.begin_step(targets_);
  gate.open(1);
  for (const size_t index : {0, 1}) gate.take_gradient(all(index));
  EXPECT_EQ(a(0), 0);
  gate.finish_gradients();
  EXPECT_EQ(a(0), -1);
  EXPECT_EQ(copy.values<float>()[0], 0);
  scheme_->prepare_lane(0);
  EXPECT_EQ(copy.values<float>()[0], -1);
}

}  // namespace
}  // namespace mox
