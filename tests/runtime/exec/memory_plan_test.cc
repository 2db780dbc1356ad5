#include "runtime/exec/internal/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <new>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace mox {
namespace {

// The most memory that is alive at one instruction: no plan can do with less.
size_t lower_bound_of(const std::vector<MemoryBlock>& blocks, int instructions) {
  size_t most = 0;
  for (int instruction = 0; instruction < instructions; ++instruction) {
    size_t alive = 0;
    for (const MemoryBlock& block : blocks)
      if (block.first_instruction <= instruction && instruction <= block.last_instruction)
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

// Lifetimes as in training: most end soon, some live until the backward pass comes to them.
TEST(MemoryPlan, ManyBlocksArePlannedSoonAndInLittleMemory) {
  constexpr int kBlocks = 200'000;
  const RandomStream random(1, 1);
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < kBlocks; ++i) {
    const bool is_kept = random.below(2 * static_cast<uint64_t>(i), 4) == 0 && i < kBlocks / 2;
    blocks.push_back(
        {1 + random.below(2 * static_cast<uint64_t>(i) + 1, 4096), i, is_kept ? kBlocks - i : i + 1});
  }
  const size_t arena = plan_memory(blocks);
  // What is alive at each instruction, by what begins and what ends there.
  std::vector<int64_t> change(kBlocks + 3);
  for (const MemoryBlock& block : blocks) {
    const auto bytes = static_cast<int64_t>((block.bytes + 63) / 64 * 64);
    change[block.first_instruction] += bytes;
    change[block.last_instruction + 1] -= bytes;
  }
  int64_t alive = 0, most = 0;
  for (const int64_t bytes : change) most = std::max(most, alive += bytes);
  EXPECT_LE(arena, static_cast<size_t>(most) * 3 / 2);
  // No two that are alive at once share memory: sweep over time, with the places in use by offset.
  std::vector<std::vector<const MemoryBlock*>> begins(kBlocks + 2), ends(kBlocks + 2);
  for (const MemoryBlock& block : blocks) {
    begins[block.first_instruction].push_back(&block);
    ends[block.last_instruction].push_back(&block);
  }
  std::map<int64_t, int64_t> in_use;  // offset, end
  for (size_t instruction = 0; instruction < begins.size(); ++instruction) {
    for (const MemoryBlock* block : begins[instruction]) {
      const int64_t end = block->offset + static_cast<int64_t>(block->bytes);
      ASSERT_EQ(block->offset % 64, 0);
      ASSERT_LE(static_cast<size_t>(end), arena);
      const auto after = in_use.lower_bound(block->offset);
      ASSERT_TRUE(after == in_use.end() || after->first >= end);
      ASSERT_TRUE(after == in_use.begin() || std::prev(after)->second <= block->offset);
      in_use.emplace(block->offset, end);
    }
    for (const MemoryBlock* block : ends[instruction]) in_use.erase(block->offset);
  }
}

TEST(MemoryPlan, AChainNeedsTwoBlocks) {
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_memory(blocks), 2048u);
}

TEST(MemoryPlan, MoreThanCanBeAddressedIsNotPlanned) {
  std::vector<MemoryBlock> blocks(4, {size_t{1} << 61, 0, 1});
  EXPECT_THROW(plan_memory(blocks), OutOfMemory);
}

TEST(MemoryPlan, NoBlocksNoArena) {
  std::vector<MemoryBlock> blocks;
  EXPECT_EQ(plan_memory(blocks), 0u);
}

}  // namespace
}  // namespace mox
