// Variables, their scopes and collections.
#include "moxing/model/variables.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "moxing/model/variable_store.h"
#include "ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/graph/graph.h"
#include "tests/moxing/small_run.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string line_text(int line) { return "variables_test.cc:" + std::to_string(line); }

std::vector<std::string> names_of(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) names.push_back(tensor.name());
  return names;
}

class VariablesTest : public ::testing::Test {
 protected:
  Graph graph_;
  GraphScope graph_scope_{graph_};
};

TEST_F(VariablesTest, ScopesNestAndEnd) {
  {
    auto outer = var_scope("a");
    get_variable("w", {1});
    {
      auto inner = var_scope("b/c");
      get_variable("w", {1});
    }
    get_variable("v", {1});
  }
  get_variable("w", {1});
  {
    auto again = var_scope("a");
    get_variable("u", {1});
  }
  EXPECT_THAT(names_of(get_collection("variables")), ElementsAre("a/w", "a/b/c/w", "a/v", "w", "a/u"));
}

TEST_F(VariablesTest, AScopeEndsWhenAnExceptionLeavesIt) {
  try {
    [[maybe_unused]] const auto scope = var_scope("a", Reuse::kAuto);
    throw DataError("out");
  } catch (const DataError&) {
  }
  get_variable("w", {1});
  EXPECT_THAT(names_of(get_collection("variables")), ElementsAre("w"));
  EXPECT_THROW(get_variable("w", {1}), InvalidArgument);
  EXPECT_EQ(current_name_scope(), "");
}

TEST_F(VariablesTest, ANameAskedForTwiceShowsBothPlaces) {
  get_variable("w", {1});
  const int first = __LINE__ - 1, second = __LINE__ + 1;
  const std::string message = message_of<InvalidArgument>([] { get_variable("w", {1}); });
  EXPECT_THAT(message, AllOf(HasSubstr("'w'"), HasSubstr(line_text(first)), HasSubstr(line_text(second))));
}

TEST_F(VariablesTest, AnotherShapeShowsBothShapesAndPlaces) {
  get_variable("w", {2, 3});
  const int first = __LINE__ - 1;
  const auto again = [] {
    const auto scope = var_scope("s", Reuse::kAuto);
    get_variable("w", {2});
    get_variable("w", {3, 2});
  };
  const std::string message = message_of<InvalidArgument>(again);
  EXPECT_THAT(message, AllOf(HasSubstr("[2]"), HasSubstr("[3, 2]"), HasSubstr("'s/w'"),
                             HasSubstr(line_text(first + 4)), HasSubstr(line_text(first + 5))));
}

TEST_F(VariablesTest, ReuseGivesTheSameVariable) {
  Tensor first;
  {
    auto scope = var_scope("a");
    first = get_variable("w", {2});
  }
  {
    auto scope = var_scope("a", Reuse::kRequire);
    EXPECT_EQ(get_variable("w", {2}), first);
    const std::string message = message_of<NotFound>([] { get_variable("v", {2}); });
    EXPECT_THAT(message, AllOf(HasSubstr("'a/v'"), HasSubstr(line_text(__LINE__ - 1))));
  }
  {
    auto scope = var_scope("a", Reuse::kAuto);
    EXPECT_EQ(get_variable("w", {2}), first);
    get_variable("v", {2});
    EXPECT_EQ(get_variable("v", {2}).name(), "a/v");
  }
}

TEST_F(VariablesTest, ReuseIsInheritedAndCanBeForbiddenAgain) {
  auto outer = var_scope("a", Reuse::kAuto);
  {
    auto inner = var_scope("b");
    get_variable("w", {1});
    get_variable("w", {1});
  }
  {
    auto inner = var_scope("b", Reuse::kForbid);
    EXPECT_THROW(get_variable("w", {1}), InvalidArgument);
  }
}

TEST_F(VariablesTest, RefusesNamesThatAreNoNames) {
  for (const char* name : {"", "/a", "a/"}) {
    EXPECT_THROW(get_variable(name, {1}), InvalidArgument) << name;
    EXPECT_THROW(static_cast<void>(var_scope(name)), InvalidArgument) << name;
  }
  EXPECT_THAT(get_collection("variables"), IsEmpty());
}

TEST_F(VariablesTest, CollectionsAreFilteredByScope) {
  get_variable("ab", {1});
  {
    auto scope = var_scope("a");
    get_variable("w", {1});
    get_variable("frozen", {1}, zeros(), {.trainable = false});
  }
  EXPECT_THAT(names_of(get_collection("variables", "a")), ElementsAre("a/w", "a/frozen"));
  EXPECT_THAT(names_of(get_collection("variables", "a/")), ElementsAre("a/w", "a/frozen"));
  EXPECT_THAT(names_of(get_collection("trainable_variables")), ElementsAre("ab", "a/w"));
  EXPECT_THAT(get_collection("trainable_variables", "b"), IsEmpty());
  EXPECT_THAT(get_collection("nobody_added_to_this"), IsEmpty());
}

// A node that came first has the name already: the variable is found under its own name all the same.
TEST_F(VariablesTest, CollectionsGoByTheNameOfTheVariable) {
  const Tensor x = fill({1}, 2.0f);
  const Tensor node = square(x);
  const Tensor variable = get_variable(node.name(), {1});
  EXPECT_THAT(get_collection("variables", node.name()), ElementsAre(variable));
}

TEST_F(VariablesTest, OnesOwnCollectionKeepsTheOrder) {
  const Tensor a = get_variable("a", {1}), b = get_variable("b", {1});
  add_to_collection("mine", b);
  add_to_collection("mine", a);
  EXPECT_THAT(get_collection("mine"), ElementsAre(b, a));
  EXPECT_THAT(get_collection("mine", "a"), ElementsAre(a));
  EXPECT_THAT(message_of<InvalidArgument>([&] { add_to_collection("variables", a); }),
              HasSubstr("'variables'"));
  EXPECT_THROW(add_to_collection("trainable_variables", a), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([] { add_to_collection("mine", Tensor()); }), HasSubstr("'mine'"));
}

TEST_F(VariablesTest, RegularizersMakeOnePenaltyAVariableWhoeverSharesIt) {
  auto scope = var_scope("a", Reuse::kAuto);
  get_variable("w", {3}, constant_initializer(2), {.regularizer = l2_regularizer(0.5f)});
  get_variable("w", {3}, constant_initializer(2), {.regularizer = l2_regularizer(0.5f)});
  get_variable("v", {2}, constant_initializer(-2), {.regularizer = l1_regularizer(0.25f)});
  const auto penalties = get_collection("regularization_losses", "a");
  ASSERT_EQ(penalties.size(), 2u);
  const auto values = test::run_graph(penalties);
  EXPECT_FLOAT_EQ(static_cast<float>(values[0].item()), 0.5f * 3 * 4 / 2);
  EXPECT_FLOAT_EQ(static_cast<float>(values[1].item()), 0.25f * 2 * 2);
}

TEST_F(VariablesTest, UpdateAfterStepRefusesWhatCannotBe) {
  const Tensor v = get_variable("v", {2}), x = fill({2}, 1.0f);
  update_after_step(v, x);
  EXPECT_EQ(graph_.after_step_values().size(), 1u);
  const auto here = line_text(__LINE__ + 1);
  const std::string message = message_of<InvalidArgument>([&] { update_after_step(x, v); });
  EXPECT_THAT(message, AllOf(HasSubstr("needs a variable"), HasSubstr(here)));
  EXPECT_THROW(update_after_step(Tensor(), v), InvalidArgument);
  EXPECT_THROW(update_after_step(v, Tensor()), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([&] { update_after_step(v, fill({3}, 1.0f)); }),
              AllOf(HasSubstr("'v'"), HasSubstr("[2]"), HasSubstr("[3]")));
}

// Two rules for one variable: which of them counts would be anybody's guess.
TEST_F(VariablesTest, AVariableHasOneUpdateAfterAStep) {
  const Tensor v = get_variable("v", {2});
  update_after_step(v, v * 2.0f);
  const int second = __LINE__ + 1;
  const auto update_again = [&] { update_after_step(v, v * 3.0f); };
  EXPECT_THAT(message_of<InvalidArgument>(update_again),
              AllOf(HasSubstr("'v'"), HasSubstr("already"), HasSubstr(line_text(second))));
}

TEST_F(VariablesTest, TensorsOfAnotherGraphAreRefused) {
  const Tensor v = get_variable("v", {2}), x = fill({2}, 1.0f);
  Graph other;
  GraphScope scope(other);
  const Tensor own = get_variable("v", {2});
  EXPECT_THROW(update_after_step(v, x), InvalidArgument);
  EXPECT_THROW(update_after_step(own, x), InvalidArgument);
  EXPECT_THROW(add_to_collection("mine", x), InvalidArgument);
}

TEST(VariablesOutsideOfAModelTest, SayThatNoGraphIsBeingBuilt) {
  EXPECT_THAT(message_of<FailedPrecondition>([] { get_variable("w", {1}); }),
              AllOf(HasSubstr("get_variable"), HasSubstr("outside of a model function")));
  EXPECT_THROW(static_cast<void>(var_scope("a")), FailedPrecondition);
  EXPECT_THROW(get_collection("variables"), FailedPrecondition);
  Graph graph;
  Tensor v;
  {
    GraphScope scope(graph);
    v = get_variable("v", {1});
  }
  EXPECT_THROW(add_to_collection("mine", v), FailedPrecondition);
  EXPECT_THROW(update_after_step(v, v), FailedPrecondition);
}

TEST(VariableValuesTest, DoNotDependOnTheOrderOfCreation) {
  std::vector<NamedArray> values[2];
  for (int turn : {0, 1}) {
    Graph graph;
    GraphScope scope(graph);
    for (const char* name : turn == 0 ? std::array{"a", "b"} : std::array{"b", "a"}) {
      auto inside = var_scope(name);
      get_variable("w", {4, 4}, random_normal_initializer(0, 1));
    }
    VariableStore store(7);
    store.declare(graph);
    values[turn] = store.all();
  }
  ASSERT_EQ(values[0].size(), 2u);
  for (size_t i : {0u, 1u}) {
    EXPECT_EQ(values[0][i].name, values[1][i].name);
    EXPECT_EQ(std::memcmp(values[0][i].value.data(), values[1][i].value.data(), values[0][i].value.bytes()),
              0);
  }
  EXPECT_NE(std::memcmp(values[0][0].value.data(), values[0][1].value.data(), values[0][0].value.bytes()), 0);
}

TEST(ScopeNamesTest, AreWholeParts) {
  EXPECT_TRUE(is_in_scope("a/b", "a"));
  EXPECT_TRUE(is_in_scope("a", "a"));
  EXPECT_TRUE(is_in_scope("a/b", "a/"));
  EXPECT_TRUE(is_in_scope("a/b/c", "a/b"));
  EXPECT_TRUE(is_in_scope("a", ""));
  EXPECT_FALSE(is_in_scope("ab", "a"));
  EXPECT_FALSE(is_in_scope("a", "a/b"));
  EXPECT_FALSE(is_in_scope("b/a", "a"));
}

class VariablesOfARun : public SmallRun {};

TEST_F(VariablesOfARun, AVariableOfTheEvaluationSideStaysInTheCheckpointsOfARunThatDoesNotEvaluate) {
  RunSpec s = spec();
  s.model_fn = [](const Inputs& in, ModeKeys mode) {
    ModelSpec model = constant_slope_model(in, mode);
    if (mode != ModeKeys::TRAIN)
      model.log_info.emplace_back("threshold",
                                  get_variable("threshold", {}, constant_initializer(0.25)) + 0.0f);
    return model;
  };
  for (const bool evaluates : {true, false, true}) {
    if (evaluates)
      s.inter_mode = ModeKeys::EVAL;
    else
      s.inter_mode.reset();
    const RunResult result = run_or_throw(s);
    EXPECT_EQ(result.global_step, *s.max_number_of_steps);
    EXPECT_EQ(saved("threshold").item(), 0.25);
    s.max_number_of_steps = *s.max_number_of_steps + 4;
  }
}

}  // namespace
}  // namespace mox
