// Where blocks of known size and lifetime go in one arena.
//
// Greedy by size: the largest block first, each at the lowest offset that is free during its whole lifetime
// (Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, "greedy by size for
// offset calculation"). Two blocks overlap in memory only if their lifetimes do not meet.
//
// That takes the square of the number of blocks. Of more than kMostPlacedBySize the smaller ones go behind
// the others as they come in time, each into the smallest chunk that is free and at most twice as large, else
// into one of its own: n log n, for blocks of which the largest of them decide little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mox {

struct MemoryBlock {
  size_t bytes = 0;
  int first_instruction = 0, last_instruction = 0;  // inclusive
  int64_t offset = -1;                              // filled in; a multiple of 64
};

inline constexpr size_t kMostPlacedBySize = 8192;

// Returns the size of the arena. Throws OutOfMemory for one that cannot be addressed.
size_t plan_memory(std::vector<MemoryBlock>& blocks);

}  // namespace mox
