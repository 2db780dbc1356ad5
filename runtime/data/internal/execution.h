// What all parts of one running pipeline share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/data/internal/buffer_pool.h"
#include "runtime/data/memory_budget.h"
#include "runtime/interruption/interruption.h"

namespace mox::data::internal {

// Thrown by long loops when the pipeline is being stopped; never leaves the pipeline.
struct Stopped {};

struct Execution {
  uint64_t seed = 0;
  std::shared_ptr<MemoryBudget> memory_budget = std::make_shared<MemoryBudget>(SIZE_MAX);
  BufferPool pool;
  std::atomic<bool> stop{false};
  // Loops over samples may spread over the arena's threads: set while the flow graph runs and
  // samples are costly.
  std::atomic<bool> split_samples{false};

  // For a wish to stop, too, where batches are made in the thread that asks for them.
  void throw_if_stopped() const {
    mox::internal::throw_if_interrupted();
    if (stop.load(std::memory_order_relaxed)) throw Stopped();
  }
};

}  // namespace mox::data::internal
