// A node may have any number of outputs.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "tests/support/evaluate.h"

namespace mox {
namespace {

using test::run_graph;

TEST(ManyOutputsTest, EachOutputKeepsItsValueThroughTheCompiler) {
  constexpr int64_t kPieces = 1000;
  Graph graph;
  const GraphScope scope(graph);
  const Tensor x = graph.input(0, {DType::kFloat32, {kPieces}}, SourceLocation::current());
  const std::vector<Tensor> pieces = split(square(x), kPieces, 0);
  Array numbers(DType::kFloat32, {kPieces});
  for (int64_t i = 0; i < kPieces; ++i) numbers.values<float>()[i] = static_cast<float>(i);
  const Array result = run_graph(pieces[1] + pieces[256] - pieces[300] + pieces[999], std::vector{numbers});
  EXPECT_EQ(result.item(), 1 + 256 * 256 - 300 * 300 + 999 * 999);
}

}  // namespace
}  // namespace mox
