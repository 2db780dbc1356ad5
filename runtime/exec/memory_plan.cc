#include "runtime/exec/internal/memory_plan.h"

#include <algorithm>
#include <new>
#include <numeric>

namespace mox {

size_t plan_memory(std::vector<MemoryBlock>& blocks) {
  constexpr int64_t kAlignment = 64;
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const MemoryBlock*> placed;  // by offset
  int64_t arena = 0;
  for (size_t index : by_size) {
    MemoryBlock& block = blocks[index];
    const int64_t size = (static_cast<int64_t>(block.bytes) + kAlignment - 1) / kAlignment * kAlignment;
    int64_t offset = 0;
    for (const MemoryBlock* other : placed) {
      if (other->last_instruction < block.first_instruction ||
          other->first_instruction > block.last_instruction)
        continue;
      if (other->offset - offset >= size) break;
      offset = std::max(offset, other->offset + (static_cast<int64_t>(other->bytes) + kAlignment - 1) /
                                                    kAlignment * kAlignment);
    }
    int64_t end = 0;
    if (__builtin_add_overflow(offset, size, &end)) throw std::bad_alloc();
    block.offset = offset;
    arena = std::max(arena, end);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &block,
                         [](const MemoryBlock* a, const MemoryBlock* b) { return a->offset < b->offset; }),
        &block);
  }
  return static_cast<size_t>(arena);
}

}  // namespace mox
