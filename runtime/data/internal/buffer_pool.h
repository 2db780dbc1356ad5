// Recycled, 64-byte aligned buffers: a batch's memory comes back when its last Array goes, and the next batch
// of that size takes it, so that a steady pipeline neither allocates nor faults pages in.
#pragma once

#include <cstddef>
#include <memory>

namespace mox::data::internal {

class BufferPool {
 public:
  BufferPool();
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // `bytes` of memory, not initialised. May outlive the pool. Any thread.
  std::shared_ptr<std::byte> take(size_t bytes);

  // Gives up the buffers that nobody holds, of which there are more than will be taken again. Any thread.
  void trim();

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace mox::data::internal
