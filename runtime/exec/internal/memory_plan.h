// Where blocks of known size and lifetime go in one arena.
//
// Greedy by size: the largest block first, each at the lowest offset that is free during its whole lifetime
// (Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, "greedy by size for
// offset calculation"). Two blocks overlap in memory only if their lifetimes do not meet.
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

// Returns the size of the arena.
size_t plan_memory(std::vector<MemoryBlock>& blocks);

}  // namespace mox
