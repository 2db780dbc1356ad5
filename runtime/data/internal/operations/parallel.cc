#include "runtime/data/internal/operations/parallel.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "runtime/data/happens_before.h"

namespace mox::data::internal {
namespace {

constexpr char kLoopStarts = 0;  // a name for happens_before.h that a body knows before it reads anything

}  // namespace

void for_each_sample(size_t count, FunctionRef<void(size_t)> body) {
  publish(&kLoopStarts);
  // Isolated: while it waits, this thread must not start another batch on top of the one it is in.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(size_t{0}, count, [&](size_t i) {
      observe(&kLoopStarts);
      body(i);
      publish(&body);
    });
  });
  observe(&body);
}

}  // namespace mox::data::internal
