// The fixed order in which the contributions of logical replicas are summed.
//
// A binary tree over the leaves 0 .. leaves - 1: the left child of a node is as large as the largest power of
// two smaller than the node. Floating-point addition is not associative, so this tree, and nothing about
// devices or ranks, decides the bits of a sum. Whoever has neighbouring leaves may sum the subtrees that they
// fill; those partial sums meet in any process and on any thread with the same result.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace mox {

// Leaves [first, last).
struct LeafRange {
  int64_t first = 0, last = 0;
  int64_t size() const { return last - first; }
  bool operator==(const LeafRange&) const = default;
};

// The first leaf of the right child of a node with two leaves or more.
inline int64_t split_of(LeafRange node) {
  return node.first + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(node.size() - 1)));
}

// Whether `left` and `right` are the two children of one node of the tree over `leaves`.
bool are_siblings(int64_t leaves, LeafRange left, LeafRange right);

// The largest subtrees of the tree over `leaves` that lie within `block`, from left to right: the partial
// sums that the owner of these leaves can make alone.
std::vector<LeafRange> maximal_subtrees(int64_t leaves, LeafRange block);

template <typename Value>
struct PartialSum {
  LeafRange leaves;
  Value value;
};

// Adds `next`, which lies right of all partial sums in `stack`, and sums what has become complete:
// `add(left, right)` makes `left` their sum and is done with `right`.
template <typename Value, typename Add>
void push_partial_sum(int64_t leaves, std::vector<PartialSum<Value>>& stack, PartialSum<Value> next,
                      Add add) {
  stack.push_back(std::move(next));
  while (stack.size() >= 2) {
    PartialSum<Value>&left = stack[stack.size() - 2], &right = stack.back();
    if (!are_siblings(leaves, left.leaves, right.leaves)) return;
    add(left.value, right.value);
    left.leaves.last = right.leaves.last;
    stack.pop_back();
  }
}

}  // namespace mox
