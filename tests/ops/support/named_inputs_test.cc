// Inputs of a node by name (ops/support/named_inputs.h).
#include "ops/support/named_inputs.h"

#include <gtest/gtest.h>

#include "ops/normalisation/batch_norm_inputs.h"
#include "ops/ops.h"
#include "runtime/graph/graph.h"

namespace mox::test {
namespace {

using normalisation::ForwardInputs;
using normalisation::FusedGradientInputs;

const Op& probe_op() {
  static const Op op{.name = "probe", .infer = same_as_input, .gradient = nullptr, .compile = nullptr};
  return op;
}

Tensor value(const Shape& shape) { return constant(Array(DType::kFloat32, shape)); }

TEST(NamedInputs, AreFoundWhateverIsMissing) {
  Graph graph;
  const GraphScope scope(graph);
  const Tensor a = value({2}), b = value({3}), c = value({4}), d = value({5});
  const FusedGradientInputs<Tensor> given{.x = a, .variance = b, .dy = c, .sums = d};
  const Node* const made = &make_packed_node<FusedGradientInputs>(probe_op(), given, {{"epsilon", 0.5}}, {});
  const Node& node = *made;  // of the graph; GCC 13 takes a reference at once for one to an argument
  EXPECT_EQ(node.inputs, (std::vector<Tensor>{a, b, c, d}));
  EXPECT_EQ(node.attributes.get<double>("epsilon"), 0.5);

  const FusedGradientInputs<Tensor> read = unpack<FusedGradientInputs>(node);
  EXPECT_EQ(read.x, a);
  EXPECT_EQ(read.variance, b);
  EXPECT_EQ(read.dy, c);
  EXPECT_EQ(read.sums, d);
  for (const Tensor& missing : {read.scale, read.offset, read.mean, read.dy_more, read.y})
    EXPECT_FALSE(missing.defined());

  const FusedGradientInputs<InputPosition> where = positions<FusedGradientInputs>(node);
  EXPECT_EQ(where.dy.index, 2);
  EXPECT_EQ(where.sums.index, 3);
  EXPECT_FALSE(where.y.given());
}

TEST(NamedInputs, LieInTheirOrderForANodeThatNamesNone) {
  Graph graph;
  const GraphScope scope(graph);
  const Tensor x = value({2, 3, 4, 5}), scale = value({3}), offset = value({3});
  const ForwardInputs<Tensor> given{.x = x, .scale = scale, .offset = offset};
  EXPECT_EQ(in_order(given), (std::vector<Tensor>{x, scale, offset}));
  const Node* const made = &make_node(probe_op(), in_order(given), {}, {});
  EXPECT_EQ(unpack<ForwardInputs>(*made), given);
}

TEST(NamedInputs, AreTheFirstOnesOfANodeThatNamesNone) {
  Graph graph;
  const GraphScope scope(graph);
  const Tensor x = value({2, 3, 4, 5}), scale = value({3}), offset = value({3});
  const ForwardInputs<Tensor> read = unpack<ForwardInputs>(*batch_norm(x, scale, offset).y.node());
  EXPECT_EQ(read, (ForwardInputs<Tensor>{.x = x, .scale = scale, .offset = offset}));
}

}  // namespace
}  // namespace mox::test
