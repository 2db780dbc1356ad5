// MemoryBudget: what several pipelines may hold of memory together, in caches and in batches under way.
//
// Caches are bounded: one that does not fit is an error, or, where it need not hold all, stops to grow.
// Batches under way take what the caches and the other pipelines' batches leave, and at least one batch each.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace mox {

class MemoryBudget {
 public:
  // `origin` says for messages where the number comes from, `option` what raises it.
  explicit MemoryBudget(size_t bytes, std::string origin = "", std::string option = "memory_budget_bytes");
  // A quarter of what this process may have: of the machine's memory or, where that is less, of the limit of
  // its control groups or its own (ulimit).
  static std::shared_ptr<MemoryBudget> of_process();

  size_t bytes() const { return bytes_; }
  const std::string& option() const { return option_; }
  std::string describe() const;  // "1048576 bytes (a quarter of ...)"
  // What caches and batches of others than `own_batches` bytes leave.
  size_t room_for_batches(size_t own_batches) const;
  // What a cache that need not hold all may grow by: see Share::try_to_grow.
  size_t room_to_grow() const;

  // Memory that one cache, or the batches of one pipeline, have of a budget; given back with this object.
  class Share {
   public:
    enum class Of { kCache, kBatches };
    Share(std::shared_ptr<MemoryBudget> budget, Of of) : budget_(std::move(budget)), of_(of) {}
    ~Share() { resize(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    // One thread at a time. For a cache the bytes of all caches of the budget are the result.
    size_t resize(size_t bytes);
    // Of a cache that need not hold all: `more` bytes, if all that is held leaves a quarter of the budget
    // then, for batches and for what has to fit. Otherwise nothing, and false. One thread at a time.
    bool try_to_grow(size_t more);
    size_t bytes() const { return taken_; }
    const MemoryBudget& budget() const { return *budget_; }

   private:
    std::shared_ptr<MemoryBudget> budget_;
    Of of_;
    size_t taken_ = 0;
  };

 private:
  size_t room_beside(size_t cached, size_t own_batches) const;
  size_t room_to_grow_beside(size_t cached) const;

  const size_t bytes_;
  const std::string origin_, option_;
  std::atomic<size_t> cached_{0}, under_way_{0};
};

}  // namespace mox
