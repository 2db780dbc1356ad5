// build/bin/bench_peak [--json]: the measured limits of this machine, one line each.
#include <cstdio>
#include <cstring>

#include "bench/json_line.h"
#include "bench/peak.h"
#include "runtime/base/resource_limits.h"

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    std::fprintf(stderr, "usage: bench_peak [--json]\n");
    return 2;
  }
  const int threads = mox::available_cores();
  const bench::FmaPeak peak = bench::measure_fma_peak(threads);
  const double bandwidth = bench::measure_memory_bandwidth(threads);
  if (json) {
    bench::print_json_line({.bench = "peak",
                            .name = peak.instruction_set,
                            .metric = "fma_peak",
                            .value = peak.flops_per_second / 1e9,
                            .unit = "GFLOP/s"});
    bench::print_json_line({.bench = "peak",
                            .name = "triad",
                            .metric = "memory_bandwidth",
                            .value = bandwidth / 1e9,
                            .unit = "GB/s"});
  } else {
    std::printf("%d threads: %.0f GFLOP/s float32 (%s), %.1f GB/s from memory (triad over %d MiB)\n", threads,
                peak.flops_per_second / 1e9, peak.instruction_set.c_str(), bandwidth / 1e9,
                static_cast<int>(bench::kBandwidthBytes >> 20));
  }
  return 0;
}
