#include "runtime/data/internal/buffer_pool.h"

#include <map>
#include <mutex>
#include <vector>

#include "runtime/tensor/array.h"

namespace mox::data::internal {
namespace {

// Below this size malloc serves from its own caches, without a system call and without a shared lock.
constexpr size_t kSmallest = 16 * 1024;
// Sizes other than the steady one (a last, partial batch) must not pile up.
constexpr size_t kSizesKept = 16;

}  // namespace

struct BufferPool::Shelf {
  std::mutex mutex;
  bool closed = false;
  std::map<size_t, std::vector<std::shared_ptr<std::byte>>> free;
};

BufferPool::BufferPool() : shelf_(std::make_shared<Shelf>()) {}

BufferPool::~BufferPool() {
  std::lock_guard lock(shelf_->mutex);
  shelf_->closed = true;
  shelf_->free.clear();
}

void BufferPool::trim() {
  decltype(Shelf::free) unused;  // given back to the system without the lock
  std::lock_guard lock(shelf_->mutex);
  unused.swap(shelf_->free);
}

std::shared_ptr<std::byte> BufferPool::take(size_t bytes) {
  if (bytes < kSmallest) return allocate_aligned(bytes);
  std::shared_ptr<std::byte> memory;
  {
    std::lock_guard lock(shelf_->mutex);
    if (auto found = shelf_->free.find(bytes); found != shelf_->free.end() && !found->second.empty()) {
      memory = std::move(found->second.back());
      found->second.pop_back();
    }
  }
  if (!memory) memory = allocate_aligned(bytes);
  std::byte* address = memory.get();
  return {address, [shelf = shelf_, memory = std::move(memory), bytes](std::byte*) mutable {
            std::lock_guard lock(shelf->mutex);
            if (shelf->closed) return;
            if (shelf->free.size() >= kSizesKept && !shelf->free.contains(bytes)) shelf->free.clear();
            shelf->free[bytes].push_back(std::move(memory));
          }};
}

}  // namespace mox::data::internal
