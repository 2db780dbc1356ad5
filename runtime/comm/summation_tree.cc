#include "runtime/comm/summation_tree.h"

namespace mox {

bool are_siblings(int64_t leaves, LeafRange left, LeafRange right) {
  LeafRange node{0, leaves};
  while (node.size() >= 2) {
    const int64_t split = split_of(node);
    if (node.first == left.first && node.last == right.last)
      return left.last == split && right.first == split;
    if (right.last <= split) {
      node.last = split;
    } else if (left.first >= split) {
      node.first = split;
    } else {
      return false;
    }
  }
  return false;
}

std::vector<LeafRange> maximal_subtrees(int64_t leaves, LeafRange block) {
  std::vector<PartialSum<int>> stack;
  for (int64_t leaf = block.first; leaf < block.last; ++leaf)
    push_partial_sum(leaves, stack, {{leaf, leaf + 1}, 0}, [](int, int) {});
  std::vector<LeafRange> result;
  for (const auto& partial : stack) result.push_back(partial.leaves);
  return result;
}

}  // namespace mox
