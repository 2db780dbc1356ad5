#include "runtime/graph/recomputation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ops/fusion/default_rules.h"
#include "ops/ops.h"
#include "runtime/exec/plan.h"
#include "tests/support/evaluate.h"

namespace mox::test {
namespace {

using Inputs = std::span<const Tensor>;

struct Compiled {
  std::vector<Array> values;  // the loss and all gradients
  PlanStatistics statistics;
};

NodeTraits new_stretch(Graph& graph) {
  NodeTraits traits;
  traits.recomputed_stretch = graph.new_stretch();
  return traits;
}

// Opens a stretch that ends with the object, or nothing.
class Stretch {
 public:
  Stretch(Graph& graph, bool open) {
    if (open) traits_.emplace(new_stretch(graph));
  }

 private:
  std::optional<TraitsScope> traits_;
};

// Units of two convolutions with what stands around them, each a stretch of its own if `recompute`.
Tensor units(Graph& graph, Inputs in, bool recompute, bool with_dropout) {
  Tensor x = in[0];
  for (int unit = 0; unit < 6; ++unit) {
    const Stretch stretch(graph, recompute);
    Tensor y = relu(batch_norm(conv2d(x, in[1]), in[2], in[3]).y);
    y = tanh(bias_add(conv2d(y, in[1]), in[3]) * 0.5f);
    if (with_dropout) y = dropout(y, 0.3, true);
    x = relu(x + y);
  }
  return reduce_mean(square(x));
}

Compiled compile_units(bool recompute, bool with_dropout, const RuleOptions& options = {}) {
  const std::vector<Array> inputs = {random_array({2, 16, 24, 24}, 1),
                                     random_array({16, 16, 3, 3}, 2, -0.2f, 0.2f),
                                     random_array({16}, 3, 0.5f, 1.5f), random_array({16}, 4)};
  Graph graph;
  const GraphScope scope(graph);
  std::vector<Tensor> tensors;
  for (const Array& array : inputs)
    tensors.push_back(graph.input(static_cast<int>(tensors.size()), array.type(), SourceLocation::current()));
  std::vector<Tensor> fetches = {units(graph, tensors, recompute, with_dropout)};
  for (const Tensor& gradient : gradients(fetches[0], tensors)) fetches.push_back(gradient);
  const CompileOptions compile{.rules = default_rules(options), .convert = convert_layout};
  const Team team(1);
  const EnteredTeam entered(team);
  return {evaluate(fetches, inputs, {.seed = 3, .compile = compile}),
          Plan::compile(graph, {.fetches = fetches, .gradients = {}, .after_step_values = {}},
                        {.rules = default_rules(options), .convert = convert_layout}, team)
              ->statistics()};
}

void expect_same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(std::ranges::equal(a[i].as_bytes(), b[i].as_bytes()));
  }
}

TEST(Recomputation, GivesTheSameBitsInLessMemory) {
  for (bool with_dropout : {false, true}) {
    SCOPED_TRACE(with_dropout);
    const Compiled kept = compile_units(false, with_dropout), again = compile_units(true, with_dropout);
    expect_same_bits(again.values, kept.values);
    EXPECT_LT(again.statistics.arena_bytes, 0.8 * static_cast<double>(kept.statistics.arena_bytes));
    EXPECT_GT(again.statistics.floating_point_operations, kept.statistics.floating_point_operations);
    EXPECT_LT(again.statistics.floating_point_operations, 1.4 * kept.statistics.floating_point_operations);
  }
}

TEST(Recomputation, GoesWithTheOtherOptions) {
  const RuleOptions normalisation{.recomputed = RecomputedNormalisations::kAll};
  expect_same_bits(compile_units(true, true, normalisation).values,
                   compile_units(false, true, normalisation).values);
  if (bfloat16_support() == BFloat16Support::kNone) GTEST_SKIP() << "needs AVX-512, for bfloat16";
  const RuleOptions low{.precision = Precision::kBFloat16};
  expect_same_bits(compile_units(true, true, low).values, compile_units(false, true, low).values);
}

// What is copied, in a graph small enough to count: y and z are needed by gradients, w leaves the stretch.
TEST(Recomputation, CopiesWhatOnlyItsOwnGradientsRead) {
  Graph graph;
  const GraphScope scope(graph);
  const Tensor x = graph.input(0, {DType::kFloat32, {200, 200}}, SourceLocation::current());
  Tensor w;
  {
    const TraitsScope traits(new_stretch(graph));
    const Tensor y = exp(x), z = sigmoid(y);
    w = tanh(z);
  }
  const Tensor loss = reduce_sum(square(w));
  const Tensor gradient = gradients(loss, std::vector<Tensor>{x})[0];
  GraphRewriter rewriter(graph, {loss, gradient});
  EXPECT_GT(rewriter.apply(recomputation_rule().rule), 0);
  std::map<std::string_view, int> count;
  for (const auto& node : rewriter.graph().nodes())
    if (!node->traits.is_gradient) ++count[node->op->name];
  EXPECT_EQ(count["exp"], 2);
  EXPECT_EQ(count["sigmoid"], 2);
  EXPECT_EQ(count["tanh"], 1) << "its value leaves the stretch and is kept";
}

}  // namespace
}  // namespace mox::test
