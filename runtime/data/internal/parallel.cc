#include "runtime/data/internal/parallel.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>

namespace mox::data::internal {

void for_each_sample(size_t count, FunctionRef<void(size_t)> body) {
  // oneTBB orders the caller before the bodies and the bodies before its return; the counter says the same in
  // terms that a race detector sees, since the library itself is not instrumented.
  std::atomic<size_t> order{0};
  order.store(1, std::memory_order_release);
  // Isolated: while it waits, this thread must not start another batch on top of the one it is in.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(size_t{0}, count, [&](size_t i) {
      (void)order.load(std::memory_order_acquire);
      body(i);
      order.fetch_add(1, std::memory_order_release);
    });
  });
  (void)order.load(std::memory_order_acquire);
}

}  // namespace mox::data::internal
