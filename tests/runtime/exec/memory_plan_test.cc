#include "runtime/exec/internal/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "runtime/base/random.h"

namespace mox {
namespace {

// The most memory that is alive at one step: no plan can do with less.
size_t lower_bound_of(const std::vector<MemoryBlock>& blocks, int steps) {
  size_t most = 0;
  for (int step = 0; step < steps; ++step) {
    size_t alive = 0;
    for (const MemoryBlock& block : blocks)
      if (block.first_instruction <= step && step <= block.last_instruction)
        alive += (block.bytes + 63) / 64 * 64;
    most = std::max(most, alive);
  }
  return most;
}

TEST(MemoryPlan, BlocksThatMeetInTimeNeverMeetInMemory) {
  for (uint64_t trial = 0; trial < 50; ++trial) {
    const RandomStream random(1, trial);
    std::vector<MemoryBlock> blocks;
    for (uint64_t i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random.below(3 * i, 50));
      blocks.push_back(
          {random.below(3 * i + 1, 5000), first, first + static_cast<int>(random.below(3 * i + 2, 10))});
    }
    const size_t arena = plan_memory(blocks);
    EXPECT_GE(arena, lower_bound_of(blocks, 60));
    for (size_t a = 0; a < blocks.size(); ++a) {
      EXPECT_EQ(blocks[a].offset % 64, 0);
      EXPECT_LE(static_cast<size_t>(blocks[a].offset) + blocks[a].bytes, arena);
      for (size_t b = 0; b < a; ++b) {
        const bool meet_in_time = blocks[a].first_instruction <= blocks[b].last_instruction &&
                                  blocks[b].first_instruction <= blocks[a].last_instruction;
        const bool meet_in_memory =
            blocks[a].offset < blocks[b].offset + static_cast<int64_t>(blocks[b].bytes) &&
            blocks[b].offset < blocks[a].offset + static_cast<int64_t>(blocks[a].bytes);
        EXPECT_FALSE(meet_in_time && meet_in_memory) << a << " and " << b;
      }
    }
  }
}

TEST(MemoryPlan, AChainNeedsTwoBlocks) {
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_memory(blocks), 2048u);
}

TEST(MemoryPlan, MoreThanCanBeAddressedIsNotPlanned) {
  std::vector<MemoryBlock> blocks(4, {size_t{1} << 61, 0, 1});
  EXPECT_THROW(plan_memory(blocks), std::bad_alloc);
}

TEST(MemoryPlan, NoBlocksNoArena) {
  std::vector<MemoryBlock> blocks;
  EXPECT_EQ(plan_memory(blocks), 0u);
}

}  // namespace
}  // namespace mox
