#include "runtime/exec/internal/memory_plan.h"

#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "runtime/base/error.h"

namespace mox {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(const MemoryBlock& block) {
  return (static_cast<int64_t>(block.bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t end_of(int64_t offset, int64_t size) {
  int64_t end = 0;
  if (__builtin_add_overflow(offset, size, &end))
    throw OutOfMemory(
        "the values of a step take more bytes than there are addresses: use a smaller batch_size "
        "(eval_batch_size, where no step trains)");
  return end;
}

// Blocks that have a place, by where it begins; side by side in memory, as each new one looks at them all.
struct Placed {
  int64_t offset, end;
  int first_instruction, last_instruction;
};

// The lowest offset that is free among `placed`.
int64_t lowest_free(const std::vector<Placed>& placed, const MemoryBlock& block) {
  const int64_t size = aligned(block);
  int64_t offset = 0;
  for (const Placed& other : placed) {
    if (other.last_instruction < block.first_instruction || other.first_instruction > block.last_instruction)
      continue;
    if (other.offset - offset >= size) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

// From `arena` on; returns where they end.
int64_t place_by_time(std::vector<MemoryBlock>& blocks, std::span<size_t> indices, int64_t arena) {
  std::ranges::sort(indices, [&](size_t a, size_t b) {
    return std::pair(blocks[a].first_instruction, a) < std::pair(blocks[b].first_instruction, b);
  });
  using Chunk = std::pair<int64_t, int64_t>;  // size, offset
  std::multimap<int64_t, int64_t> free;       // chunks
  std::priority_queue<std::pair<int, Chunk>, std::vector<std::pair<int, Chunk>>, std::greater<>> in_use;
  for (const size_t index : indices) {
    MemoryBlock& block = blocks[index];
    while (!in_use.empty() && in_use.top().first < block.first_instruction) {
      free.insert(in_use.top().second);
      in_use.pop();
    }
    const int64_t size = aligned(block);
    Chunk chunk{size, arena};
    if (const auto found = free.lower_bound(size); found != free.end() && found->first <= 2 * size) {
      chunk = *found;
      free.erase(found);
    } else {
      arena = end_of(arena, size);
    }
    block.offset = chunk.second;
    in_use.emplace(block.last_instruction, chunk);
  }
  return arena;
}

}  // namespace

size_t plan_memory(std::vector<MemoryBlock>& blocks) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  const std::span<size_t> all(by_size);
  const size_t large = std::min(all.size(), kMostPlacedBySize);
  std::vector<Placed> placed;
  placed.reserve(large);
  int64_t arena = 0;
  for (const size_t index : all.first(large)) {
    MemoryBlock& block = blocks[index];
    block.offset = lowest_free(placed, block);
    const int64_t end = end_of(block.offset, aligned(block));
    arena = std::max(arena, end);
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Placed::offset),
                  {block.offset, end, block.first_instruction, block.last_instruction});
  }
  return place_by_time(blocks, all.subspan(large), arena);
}

}  // namespace mox
