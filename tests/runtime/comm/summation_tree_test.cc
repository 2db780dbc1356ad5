#include "runtime/comm/summation_tree.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <string>

namespace mox {
namespace {

// The tree over [first, last) as text, built from its definition.
std::string tree(LeafRange node) {
  if (node.size() == 1) return std::to_string(node.first);
  const int64_t split = split_of(node);
  return "(" + tree({node.first, split}) + "+" + tree({split, node.last}) + ")";
}

std::string folded(int64_t leaves, const std::vector<PartialSum<std::string>>& partials) {
  std::vector<PartialSum<std::string>> stack;
  for (const auto& partial : partials)
    push_partial_sum(leaves, stack, partial, [](std::string& left, const std::string& right) {
      left = "(" + left + "+" + right + ")";
    });
  EXPECT_EQ(stack.size(), 1u);
  return stack.front().value;
}

TEST(SummationTree, HasAPowerOfTwoOnItsLeft) {
  EXPECT_EQ(tree({0, 1}), "0");
  EXPECT_EQ(tree({0, 4}), "((0+1)+(2+3))");
  EXPECT_EQ(tree({0, 7}), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(SummationTree, AnyCutIntoBlocksGivesTheSameSum) {
  for (int64_t leaves = 1; leaves <= 24; ++leaves) {
    for (int64_t ranks = 1; ranks <= leaves; ++ranks) {
      if (leaves % ranks != 0) continue;
      std::vector<PartialSum<std::string>> partials;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const LeafRange block{rank * leaves / ranks, (rank + 1) * leaves / ranks};
        for (const LeafRange& subtree : maximal_subtrees(leaves, block))
          partials.push_back({subtree, tree(subtree)});
      }
      EXPECT_EQ(folded(leaves, partials), tree({0, leaves})) << leaves << " leaves, " << ranks << " ranks";
    }
  }
}

TEST(SummationTree, ABlockOfAPowerOfTwoIsOneSubtree) {
  EXPECT_THAT(maximal_subtrees(8, {4, 8}), testing::ElementsAre(LeafRange{4, 8}));
  EXPECT_THAT(maximal_subtrees(6, {0, 3}), testing::ElementsAre(LeafRange{0, 2}, LeafRange{2, 3}));
  EXPECT_THAT(maximal_subtrees(6, {3, 6}), testing::ElementsAre(LeafRange{3, 4}, LeafRange{4, 6}));
}

}  // namespace
}  // namespace mox
