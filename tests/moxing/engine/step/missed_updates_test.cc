// Which updates of a run the slots of a variable have seen, and what an optimizer is told of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/engine/step/parameter_updater.h"
#include "moxing/optimizers/optimizer_wrapper.h"

namespace mox::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Writes the number of each update into the variable.
class Counting : public OptimizerWrapper {
 public:
  explicit Counting(std::vector<SlotSpec> slots)
      : OptimizerWrapper(get_optimizer_fn("sgd", {.learning_rate = 1})()), slots_(std::move(slots)) {}
  std::string_view name() const override { return "counting"; }
  std::string description() const override { return "counting"; }
  std::vector<SlotSpec> slots() const override { return slots_; }
  void apply(const ParameterUpdate& update, const Team&) const override {
    update.value[0] = static_cast<float>(update.step);
  }

 private:
  std::vector<SlotSpec> slots_;
};

class MissedUpdates : public testing::Test {
 protected:
  // Of a run of which `left_out` steps were none.
  ParameterUpdater updater(const KeptOptimizer& kept, int64_t left_out = 0,
                           std::vector<SlotSpec> slots = {{"a"}, {"b"}}) {
    return {std::make_unique<Counting>(std::move(slots)),
            [this](std::string_view name) {
              return variables_.try_emplace(std::string(name), DType::kFloat32, Shape{1}).first->second;
            },
            kept, team_, LossScale(1.0, {.skipped_steps = left_out})};
  }
  // The number that the update of `name` has in the step after `step` others.
  float number(ParameterUpdater& updater, const std::string& name, int64_t step) {
    const std::vector<std::string> names{name};
    const size_t parameter = updater.declare(names)[0];
    updater.begin_step({.step = step}, updater.loss_scale().skipped_steps());
    updater.apply(parameter, std::vector<float>{1}, 1, team_);
    return variables_.at(name).values<float>()[0];
  }
  static KeptOptimizer kept_of(const ParameterUpdater& updater, int64_t step, int64_t updates) {
    return {updater.slots(), updates, updater.missed_updates(step)};
  }

  const Team team_{1};
  std::map<std::string, Array> variables_;
};

TEST_F(MissedUpdates, ThoseBeforeTheSlotsBeganAreNotCounted) {
  ParameterUpdater first = updater({});
  EXPECT_EQ(number(first, "w", 0), 1);
  EXPECT_EQ(number(first, "w", 10), 11);
  EXPECT_THAT(first.missed_updates(11), IsEmpty());

  ParameterUpdater second = updater(kept_of(first, 13, 11), 2);
  EXPECT_EQ(number(second, "w", 13), 12);
  EXPECT_EQ(number(second, "v", 14), 1) << "that another batch brings, in the middle of a run";
  EXPECT_EQ(number(second, "v", 15), 2);
  EXPECT_THAT(second.missed_updates(16), ElementsAre(Pair("v", 12)));

  ParameterUpdater third = updater(kept_of(second, 16, 14), 2);
  EXPECT_EQ(number(third, "v", 16), 3);
  EXPECT_EQ(number(third, "u", 17), 1);
  EXPECT_THAT(third.missed_updates(18), ElementsAre(Pair("u", 15), Pair("v", 12), Pair("w", 2)));
}

TEST_F(MissedUpdates, NorThoseWhileItIsFrozen) {
  ParameterUpdater first = updater({});
  EXPECT_EQ(number(first, "w", 0), 1);
  ParameterUpdater second = updater(kept_of(first, 1, 1));
  EXPECT_EQ(number(second, "v", 1), 1);
  ParameterUpdater third = updater(kept_of(second, 5, 5));
  EXPECT_EQ(number(third, "w", 5), 2);
  EXPECT_EQ(number(third, "w", 6), 3);
  EXPECT_THAT(third.missed_updates(7), ElementsAre(Pair("v", 3), Pair("w", 4)));
}

TEST_F(MissedUpdates, NorStepsThatSomethingElseDoes) {
  ParameterUpdater first = updater({});
  EXPECT_EQ(number(first, "w", 0), 1);
  for (const int64_t step : {1, 2, 3}) {
    first.begin_step({.step = step}, 0);
    first.pass_over_step();
  }
  EXPECT_THAT(first.missed_updates(4), ElementsAre(Pair("w", 3)));
  EXPECT_EQ(number(first, "w", 4), 2);
}

TEST_F(MissedUpdates, WithoutSlotsAllAreCounted) {
  ParameterUpdater rule = updater({{}, 7, {}}, 0, {});
  EXPECT_EQ(number(rule, "w", 7), 8);
  rule.begin_step({.step = 8}, 0);
  rule.pass_over_step();
  EXPECT_EQ(number(rule, "v", 9), 10);
  EXPECT_THAT(rule.missed_updates(10), IsEmpty());
}

}  // namespace
}  // namespace mox::internal
