// mpirun -n 2 build/bin/bench_comm [--json] [LARGEST_BYTES]
//
// Sums float32 arrays of 1 KB to 256 MB over the ranks: our tree, MPI_Allreduce and Gloo, in turn in the same
// run. A time is that of the slowest rank, the result the median of the rounds. Without mpirun: how fast one
// process sums the gradients of two replicas, against what its memory allows.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gloo_allreduce.h"
#include "bench/json_line.h"
#include "runtime/base/seconds.h"
#include "runtime/comm/add.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launcher.h"
#include "runtime/tensor/array.h"

namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Seconds of one call out of `calls`, the slowest rank's. The call before them brings all ranks together by
// the means that are measured: ranks that still waited by other means, polling, would take the cores from
// those that have begun.
template <typename Body>
double timed(mox::Communicator& ranks, int calls, const Body& body) {
  body();
  const auto start = Clock::now();
  for (int call = 0; call < calls; ++call) body();
  const double seconds = mox::seconds_since(start) / calls;
  double slowest = 0;
  for (const std::string& text :
       ranks.allgather_equal({reinterpret_cast<const char*>(&seconds), sizeof seconds})) {
    double theirs = 0;
    std::memcpy(&theirs, text.data(), sizeof theirs);
    slowest = std::max(slowest, theirs);
  }
  return slowest;
}

struct Times {
  double ours = 0, mpi = 0, gloo = 0;  // seconds; gloo is 0 without Gloo
};

void report(bool json, int ranks, size_t bytes, const Times& times) {
  const std::string name = fmt::format("{}_ranks_{}_bytes", ranks, bytes);
  const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds / 1e9; };
  const auto line = [&](const char* peer, double seconds) {
    bench::print_json_line({.bench = "comm",
                            .name = name,
                            .metric = "allreduce_rate",
                            .value = rate(times.ours),
                            .unit = "GB/s",
                            .peer = peer,
                            .peer_value = rate(seconds),
                            .ratio = seconds / times.ours});
  };
  if (json) {
    line("MPI_Allreduce", times.mpi);
    if (times.gloo > 0) line("Gloo", times.gloo);
    return;
  }
  fmt::print("{:>12} bytes  ours {:>10.1f} us  MPI_Allreduce {:>10.1f} us, ratio {:5.2f}", bytes,
             times.ours * 1e6, times.mpi * 1e6, times.mpi / times.ours);
  if (times.gloo > 0)
    fmt::print("  Gloo {:>10.1f} us, ratio {:5.2f}", times.gloo * 1e6, times.gloo / times.ours);
  fmt::print("\n");
}

// A new directory that all ranks, which are on one machine, know.
std::string meeting_place(mox::Communicator& ranks) {
  std::string path = (fs::temp_directory_path() / ("bench_comm_" + std::string(6, 'X'))).string();
  if (ranks.rank() == 0 && !::mkdtemp(path.data()))
    throw std::runtime_error("no temporary directory can be made");
  return ranks.broadcast_text(path);
}

void measure_allreduce(bool json, size_t largest_bytes) {
  mox::Communicator ranks(std::make_unique<mox::MpiTransport>(mox::kRanksKnownToMpi));
  const std::string place = meeting_place(ranks);
  const auto gloo = bench::make_gloo_allreduce(ranks.rank(), ranks.size(), place);
  ranks.barrier();
  if (ranks.rank() == 0) fs::remove_all(place);
  if (!gloo && ranks.rank() == 0)
    fmt::print(stderr, "bench_comm: built without Gloo (libgloo-dev), which is left out\n");
  for (size_t bytes = 1 << 10; bytes <= largest_bytes; bytes *= 4) {
    const size_t elements = bytes / sizeof(float);
    std::vector<float> values(elements, 1.0F), others(elements, 1.0F), sums(elements);
    const int calls = bytes <= (1 << 20) ? 20 : 1;
    const int rounds = bytes <= (16 << 20) ? 11 : 5;
    std::vector<double> ours, mpi, of_gloo;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(timed(ranks, calls, [&] { ranks.allreduce(values); }));
      // Our communication thread sleeps now: MPI is called by one thread at a time.
      mpi.push_back(timed(ranks, calls, [&] {
        MPI_Allreduce(others.data(), sums.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      }));
      if (gloo) of_gloo.push_back(timed(ranks, calls, [&] { gloo->sum(sums); }));
    }
    if (ranks.rank() == 0)
      report(json, ranks.size(), bytes, {median(ours), median(mpi), gloo ? median(of_gloo) : 0});
  }
  ranks.barrier();
}

// Two arrays of this size are larger than any cache.
constexpr int64_t kReplicaElements = int64_t{64} << 20;

// Bytes a second between memory and one core, in arrays as the engine has them: the triad of McCalpin's
// STREAM, which reads three arrays (also the one that it writes, to have whole cache lines) and writes one.
double memory_rate_of_one_core() {
  const mox::Shape shape{kReplicaElements};
  mox::Array a(mox::DType::kFloat32, shape), b(mox::DType::kFloat32, shape), c(mox::DType::kFloat32, shape);
  for (mox::Array* array : {&a, &b, &c}) std::ranges::fill(array->values<float>(), 1.0F);
  float* __restrict to = a.values<float>().data();
  const float *left = b.values<float>().data(), *right = c.values<float>().data();
  double best = 0;
  for (int round = 0; round < 9; ++round) {
    const auto start = Clock::now();
    const auto factor = static_cast<float>(round);
    for (int64_t i = 0; i < kReplicaElements; ++i) to[i] = left[i] + factor * right[i];
    const double seconds = mox::seconds_since(start);
    best = std::max(best, 4.0 * sizeof(float) * static_cast<double>(kReplicaElements) / seconds);
  }
  return best;
}

// The sum of two replicas' gradients is made by one thread, while the others compute: so the bound is what
// memory gives to one. A sum reads both arrays and writes one.
void measure_sum_in_process(bool json) {
  const mox::Shape shape{kReplicaElements};
  mox::Array left(mox::DType::kFloat32, shape), right(mox::DType::kFloat32, shape);
  std::ranges::fill(left.values<float>(), 1.0F);
  std::ranges::fill(right.values<float>(), 1e-3F);
  std::vector<double> seconds;
  for (int round = 0; round < 9; ++round) {
    const auto start = Clock::now();
    mox::add_to(left.values<float>().data(), right.values<float>().data(), kReplicaElements);
    seconds.push_back(mox::seconds_since(start));
  }
  const double rate = 3.0 * sizeof(float) * static_cast<double>(kReplicaElements) / median(seconds);
  const double bound = memory_rate_of_one_core();
  if (json) {
    bench::print_json_line({.bench = "comm",
                            .name = "2_replicas_in_process",
                            .metric = "memory_rate",
                            .value = rate / 1e9,
                            .unit = "GB/s",
                            .peer = "memory of one core",
                            .peer_value = bound / 1e9,
                            .ratio = rate / bound});
  } else {
    fmt::print(
        "sum of two replicas in one process: {:.1f} GB/s to and from memory, of {:.1f} that one core gets: "
        "{:.2f}\n",
        rate / 1e9, bound / 1e9, rate / bound);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  size_t largest_bytes = size_t{256} << 20;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      json = true;
    } else if (std::from_chars(word.data(), word.data() + word.size(), largest_bytes).ptr !=
               word.data() + word.size()) {
      fmt::print(stderr, "usage: mpirun -n 2 bench_comm [--json] [LARGEST_BYTES]; got '{}'\n", word);
      return 2;
    }
  }
  try {
    if (mox::launched_ranks() == 1) {
      measure_sum_in_process(json);
    } else {
      measure_allreduce(json, largest_bytes);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
