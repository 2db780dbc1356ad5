// mpirun -n 2 build/bin/bench_comm [--json]
//
// Sums float32 arrays of 1 KB to 256 MB over the ranks, with our tree and with MPI_Allreduce, in turn in the same run. A
// time is that of the slowest rank, the result the median of the rounds.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "bench/json_line.h"
#include "runtime/comm/communicator.h"

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Seconds of one call, the slowest rank's, all having begun together.
template <typename Body>
double timed(mox::Communicator& ranks, const Body& body) {
  ranks.barrier();
  const auto start = Clock::now();
  body();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  double slowest = 0;
  for (const std::string& text :
       ranks.allgather_equal({reinterpret_cast<const char*>(&seconds), sizeof seconds})) {
    double theirs = 0;
    std::memcpy(&theirs, text.data(), sizeof theirs);
    slowest = std::max(slowest, theirs);
  }
  return slowest;
}

void report(bool json, int ranks, size_t bytes, double ours, double theirs) {
  const std::string name = fmt::format("{}_ranks_{}_bytes", ranks, bytes);
  if (json) {
    bench::print_json_line({.bench = "comm",
                            .name = name,
                            .metric = "allreduce_rate",
                            .value = static_cast<double>(bytes) / ours / 1e9,
                            .unit = "GB/s",
                            .peer = "MPI_Allreduce",
                            .peer_value = static_cast<double>(bytes) / theirs / 1e9,
                            .ratio = theirs / ours});
  } else {
    fmt::print("{:>12} bytes  ours {:>10.1f} us  MPI_Allreduce {:>10.1f} us  ratio {:.2f}\n", bytes,
               ours * 1e6, theirs * 1e6, theirs / ours);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  if (mox::launched_ranks() == 1) {
    fmt::print(stderr, "bench_comm measures a job of several ranks: mpirun -n 2 build/bin/bench_comm\n");
    return 1;
  }
  mox::Communicator ranks(std::make_unique<mox::MpiTransport>());
  for (size_t bytes = 1 << 10; bytes <= size_t{256} << 20; bytes *= 4) {
    const size_t elements = bytes / sizeof(float);
    std::vector<float> values(elements, 1.0F), others(elements, 1.0F), sums(elements);
    const int rounds = bytes <= (1 << 20) ? 51 : 9;
    std::vector<double> ours, theirs;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(timed(ranks, [&] {
        ranks.wait(ranks.start(mox::make_tree_sum({.leaves = ranks.size(),
                                                   .elements = static_cast<int64_t>(elements),
                                                   .partial_sums = {values.data()},
                                                   .result = values.data(),
                                                   .tag = mox::kFirstFreeTag}),
                               "bench"));
      }));
      // Our communication thread sleeps now: MPI is called by one thread at a time.
      theirs.push_back(timed(ranks, [&] {
        MPI_Allreduce(others.data(), sums.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      }));
    }
    if (ranks.rank() == 0) report(json, ranks.size(), bytes, median(ours), median(theirs));
  }
  ranks.barrier();
  return 0;
}
