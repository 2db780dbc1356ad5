// Operation: one collective operation as a sequence of phases, so that one thread can drive many of them
// without blocking in any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/summation_tree.h"
#include "runtime/comm/transport.h"

namespace mox {

class Operation {
 public:
  virtual ~Operation() = default;
  // Called first, and then each time when all requests of the phase before are complete: does the work that
  // has become possible and posts the requests of the next phase. False when the operation is finished; then
  // it has posted none.
  virtual bool advance(Transport& transport, std::vector<Transport::Request>& requests) = 0;
};

// Message tags; of operations under way at the same time no two may have the same.
inline constexpr int kCollectiveTag = 1;  // the blocking operations of Communicator, one at a time
inline constexpr int kFirstFreeTag = 16;

// What travels between ranks: bfloat16 halves the bytes and rounds every partial sum and every result to 8
// bits of mantissa, so the result then depends on which ranks hold which leaves.
enum class WireType { kFloat32, kBFloat16 };

// Memory in which the other ranks' parts of a sum arrive: handed to one sum after another, it is made once.
struct TreeSumScratch {
  std::vector<std::vector<float>> arrays;
};

// Sums arrays over the leaves of the summation tree, which are spread over the ranks in contiguous blocks of
// equal size
// (`leaves` is a multiple of the number of ranks). Every rank gets the same bits.
//
// Each rank sums one segment of the array, in tree order, from everybody's partial sums, then hands it to all
// others (reduce-scatter, then allgather): 2 * (1 - 1 / ranks) array lengths in and out of every rank, if its
// leaves fill one subtree. Short arrays go to everybody whole, in one phase. Long ones go through in chunks,
// so that what has arrived is summed in a cache.
struct TreeSum {
  int64_t leaves = 1;
  int64_t elements = 0;
  // One array for each of maximal_subtrees(leaves, this rank's block), in their order. They
  // may be overwritten.
  std::vector<float*> partial_sums;
  float* result = nullptr;  // may be one of partial_sums
  WireType wire = WireType::kFloat32;
  int root = -1;  // the only rank that needs the sum; -1: all do. Elsewhere `result` is undefined
  int tag = kCollectiveTag;
  TreeSumScratch* scratch = nullptr;  // of one sum at a time; without one the operation has its own
  // Called with each range of `result` when it is final, while the next ones travel: every element once. It
  // may change them.
  std::function<void(std::span<float> range)> arrived = {};
};
std::unique_ptr<Operation> make_tree_sum(const TreeSum& sum);
// Messages that a rank sends for a sum of so many elements that all need, if its leaves fill one subtree.
int64_t tree_sum_messages(int64_t elements, int ranks);

// Everybody's `data`, of one length, to everybody: `results` has one string for each rank. Both belong to the
// caller and outlive the operation.
std::unique_ptr<Operation> make_allgather(std::span<const std::byte> data, std::vector<std::string>* results,
                                          int tag = kCollectiveTag);

// The leaves of a rank's block.
LeafRange block_of(int64_t leaves, int rank, int ranks);

}  // namespace mox
