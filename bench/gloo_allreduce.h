// Gloo's allreduce, which PyTorch uses on CPUs, between the ranks of an MPI job.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace bench {

class GlooAllreduce {
 public:
  virtual ~GlooAllreduce() = default;
  // Each element becomes its sum over the ranks. All ranks call it together.
  virtual void sum(std::span<float> values) = 0;
};

// Connects the ranks over TCP, on this machine's loopback interface or on that of GLOO_SOCKET_IFNAME. They
// meet in `directory`, which is empty and the same for all. Null if this program was built without Gloo.
std::unique_ptr<GlooAllreduce> make_gloo_allreduce(int rank, int ranks, const std::string& directory);

}  // namespace bench
