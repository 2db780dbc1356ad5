#include "moxing/job/distributed.h"

#include "runtime/job/job.h"

namespace mox {

using internal::job;

int rank() { return job().rank(); }
int size() { return job().size(); }
int local_rank() { return job().local_rank(); }
int local_size() { return job().local_size(); }

void barrier() { job().barrier(); }
void broadcast(std::span<std::byte> data, int root) { job().broadcast(data, root); }
void broadcast(Array& array, int root) { job().broadcast({array.data(), array.bytes()}, root); }
std::string broadcast(std::string_view text, int root) { return job().broadcast_text(text, root); }
void allreduce(std::span<float> values) { job().allreduce(values); }
void allreduce(std::span<double> values) { job().allreduce(values); }
void allreduce(std::span<int64_t> values) { job().allreduce(values); }
std::vector<std::string> allgather(std::string_view data) { return job().allgather(data); }

void mpi_local_sync_barrier(const std::function<void()>& function) {
  if (local_rank() == 0) {
    const internal::JobActivity activity(internal::kLocalWork);
    function();
  }
  job().local_barrier();
}

}  // namespace mox
