// The rewrite sweep, with rules that know a few ops.
#include "runtime/graph/rewrite.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.emplace_back(node->op->name);
  return names;
}

// neg(neg(x)) is x.
std::optional<std::vector<Tensor>> remove_double_negation(const Node& node, const RewriteView& view) {
  if (node.op->name != "neg" || node.inputs[0].node()->op->name != "neg") return std::nullopt;
  return std::vector{view.mapped(node.inputs[0].node()->inputs[0])};
}

class RewriteTest : public ::testing::Test {
 protected:
  Tensor input(int component) {
    return graph_.input(component, {DType::kFloat32, {2}}, SourceLocation::current());
  }

  Graph graph_;
  GraphScope scope_{graph_};
};

TEST_F(RewriteTest, ReadersAreFoundOnceForEachPlace) {
  const Tensor x = input(0);
  const Tensor once = exp(x), twice = once * once, never = neg(twice);
  GraphRewriter rewriter(graph_, {never});
  std::vector<std::vector<std::string>> readers;
  rewriter.apply([&](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
    readers.emplace_back();
    for (const Node* reader : view.readers(Tensor(const_cast<Node*>(&node), 0)))
      readers.back().emplace_back(reader->op->name);
    return std::nullopt;
  });
  const std::vector<std::string> of_x{"exp"}, of_once{"mul", "mul"}, of_twice{"neg"}, none;
  EXPECT_THAT(readers, ElementsAre(of_x, of_once, of_twice, none));
}

TEST_F(RewriteTest, CopiesOnlyWhatTheOutputsNeed) {
  const Tensor x = input(0), y = input(1);
  const Tensor wanted = exp(x).named("wanted");
  log(y);
  GraphRewriter rewriter(graph_, {wanted});
  EXPECT_THAT(op_names(rewriter.graph()), ElementsAre("input", "exp"));
  EXPECT_EQ(rewriter.outputs()[0].name(), "wanted");
  EXPECT_NE(rewriter.outputs()[0].node(), wanted.node());
  EXPECT_EQ(rewriter.outputs()[0].where().line(), wanted.where().line());
  EXPECT_EQ(graph_.nodes().size(), 4u);  // as it was
}

TEST_F(RewriteTest, ReplacesAndDropsWhatIsLeftWithoutUsers) {
  const Tensor x = input(0);
  GraphRewriter rewriter(graph_, {exp(neg(neg(x)))});
  EXPECT_EQ(rewriter.apply(remove_double_negation), 1);
  EXPECT_THAT(op_names(rewriter.graph()), ElementsAre("input", "exp"));
  EXPECT_EQ(rewriter.apply(remove_double_negation), 0);
  EXPECT_THAT(op_names(rewriter.graph()), ElementsAre("input", "exp"));
}

// What nothing needs any more is not there for the rules that come after.
TEST_F(RewriteTest, TheNextSweepDoesNotSeeWhatIsLeftWithoutUsers) {
  const Tensor x = input(0);
  GraphRewriter rewriter(graph_, {exp(neg(neg(x)))});
  EXPECT_EQ(rewriter.apply(remove_double_negation), 1);
  std::vector<std::string> swept, readers;
  rewriter.apply([&](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
    swept.emplace_back(node.op->name);
    if (swept.size() > 1) return std::nullopt;
    EXPECT_EQ(view.uses(Tensor(const_cast<Node*>(&node), 0)), 1);
    for (const Node* reader : view.readers(Tensor(const_cast<Node*>(&node), 0)))
      readers.emplace_back(reader->op->name);
    for (const auto& other : node.graph->nodes())
      EXPECT_EQ(view.is_needed(*other), other->op->name != "neg") << other->name;
    return std::nullopt;
  });
  EXPECT_THAT(swept, ElementsAre("input", "exp"));
  EXPECT_THAT(readers, ElementsAre("exp"));
  EXPECT_THAT(op_names(rewriter.graph()), ElementsAre("input", "exp"));
}

TEST_F(RewriteTest, OnlyGraphsThatHaveWhatARuleNeedsAreSwept) {
  const Tensor x = input(0);
  log(x);  // which is not needed itself
  GraphRewriter rewriter(graph_, {exp(x)});
  int calls = 0;
  const auto count = [&](const Node&, const RewriteView&) -> std::optional<std::vector<Tensor>> {
    ++calls;
    return std::nullopt;
  };
  EXPECT_EQ(rewriter.apply(count, [](const Node& node) { return node.op->name == "log"; }), 0);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(rewriter.apply(count, [](const Node& node) { return node.op->name == "exp"; }), 0);
  EXPECT_EQ(calls, 2) << "at every node, not only those";
}

TEST_F(RewriteTest, ARuleRemembersForOneSweep) {
  GraphRewriter rewriter(graph_, {exp(neg(input(0)))});
  for (int sweep = 0; sweep < 2; ++sweep) {
    int calls = 0;
    rewriter.apply([&](const Node&, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
      EXPECT_EQ(view.memory().has_value(), calls > 0);
      if (calls > 0) {
        EXPECT_EQ(std::any_cast<int>(view.memory()), calls);
      }
      view.memory() = ++calls;
      return std::nullopt;
    });
    EXPECT_EQ(calls, 3);
  }
}

TEST_F(RewriteTest, KeepsWhatOthersStillUse) {
  const Tensor x = input(0);
  const Tensor once = neg(x);
  GraphRewriter rewriter(graph_, {neg(once), once});
  EXPECT_EQ(rewriter.apply(remove_double_negation), 1);
  EXPECT_THAT(op_names(rewriter.graph()), ElementsAre("input", "neg"));
  EXPECT_EQ(rewriter.outputs()[0].node()->op->name, "input");  // an output may become an input
  EXPECT_EQ(rewriter.outputs()[1].node()->op->name, "neg");
}

TEST_F(RewriteTest, OneSweepSeesWhatItReplacedBefore) {
  const Tensor x = input(0);
  GraphRewriter rewriter(graph_, {neg(neg(neg(neg(x))))});
  rewriter.apply(remove_double_negation);
  EXPECT_THAT(op_names(rewriter.graph()), ElementsAre("input"));
}

TEST_F(RewriteTest, CountsUses) {
  const Tensor x = input(0);
  const Tensor shared = exp(x);
  const Tensor sum = shared + shared;
  const Tensor other = log(shared);
  GraphRewriter rewriter(graph_, {sum, other, other});
  int of_exp = 0, of_log = 0;
  rewriter.apply([&](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
    const Tensor output(const_cast<Node*>(&node), 0);
    if (node.op->name == "exp") of_exp = view.uses(output);
    if (node.op->name == "log") {
      of_log = view.uses(output);
      EXPECT_EQ(view.uses_of_mapped(view.mapped(node.inputs[0])), 3);
    }
    return std::nullopt;
  });
  EXPECT_EQ(of_exp, 3);  // twice in the sum, once in the logarithm
  EXPECT_EQ(of_log, 2);  // it is two outputs
}

TEST_F(RewriteTest, RedirectsWhatComesLater) {
  const Tensor x = input(0);
  const Tensor shared = exp(x);
  const Tensor earlier = neg(shared), place = sqrt(shared), later = log(shared);
  GraphRewriter rewriter(graph_, {earlier, place, later, shared});
  int of_former = -1, of_fresh = -1;
  rewriter.apply([&](const Node& node, const RewriteView& view) -> std::optional<std::vector<Tensor>> {
    if (node.op->name == "log") {
      const Tensor fresh = view.mapped(node.inputs[0]);
      EXPECT_EQ(fresh.node()->op->name, "square");
      of_fresh = view.uses_of_mapped(fresh);
    }
    if (node.op->name != "sqrt") return std::nullopt;
    const Tensor old = node.inputs[0], former = view.mapped(old);
    view.redirect(old, square(view.mapped(old.node()->inputs[0])));
    of_former = view.uses_of_mapped(former);
    return std::vector{sqrt(former)};
  });
  ASSERT_EQ(rewriter.outputs().size(), 4u);
  const auto argument = [&](size_t output) {
    return rewriter.outputs()[output].node()->inputs[0].node()->op->name;
  };
  EXPECT_EQ(argument(0), "exp");  // what was built before stays
  EXPECT_EQ(argument(1), "exp");
  EXPECT_EQ(argument(2), "square");
  EXPECT_EQ(rewriter.outputs()[3].node()->op->name, "square");  // outputs of the whole graph come last
  EXPECT_EQ(of_former, 0);
  EXPECT_EQ(of_fresh, 4);
}

TEST_F(RewriteTest, VariablesSurvive) {
  const Tensor w = graph_.add_variable({.name = "w",
                                        .type = {DType::kFloat32, {2}},
                                        .trainable = true,
                                        .initial_value = [](uint64_t) { return Array(DType::kFloat32, {2}); },
                                        .where = SourceLocation::current()});
  GraphRewriter rewriter(graph_, {neg(neg(w))});
  rewriter.apply(remove_double_negation);
  EXPECT_EQ(rewriter.outputs()[0], rewriter.graph().find_variable("w"));
  EXPECT_EQ(rewriter.graph().spec(rewriter.outputs()[0]).name, "w");
}

TEST_F(RewriteTest, ChangesNoValue) {
  const test::Build build = [](std::span<const Tensor> in) { return exp(neg(neg(in[0]))) + neg(neg(in[0])); };
  const Array x = Array::from<float>({2}, {1, -2});
  Graph graph;
  GraphScope scope(graph);
  const Tensor y = build(std::vector{graph.input(0, x.type(), SourceLocation::current())});
  CompileOptions compile = test::compile_options_without_rules();
  const Array before = evaluate(std::vector{y}, std::vector{x}, {.compile = compile})[0];
  compile.rules = {{"double negation", remove_double_negation}};
  test::expect_close(evaluate(std::vector{y}, std::vector{x}, {.compile = compile})[0], before, 0, 0);
}

}  // namespace
}  // namespace mox
