// The physical limits of this machine, measured: what a share of peak refers to.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct FmaPeak {
  double flops_per_second = 0;  // float32, a multiply-add counted as two, summed over the threads
  std::string instruction_set;  // "AVX-512" or "AVX2"
};

// Runs independent fused multiply-adds in registers on `threads` threads at once for `seconds`, with the
// widest vectors that the CPU has. Each thread counts with its best millisecond, so that other work on the
// machine does not lower the limit.
FmaPeak measure_fma_peak(int threads, double seconds = 1.0);

// What the arrays of measure_memory_bandwidth take together. A last-level cache is shared by all cores of its
// processor, those of other machines on the same host included, and may be larger than this machine is told:
// so the arrays are larger than any of them.
inline constexpr int64_t kBandwidthBytes = int64_t{768} << 20;

// Bytes a second of a[i] = b[i] + s * c[i] on `threads` threads, counting two reads and one write an element
// (McCalpin's STREAM triad, which does not count the read before the write). Best of `repeats`.
double measure_memory_bandwidth(int threads, int repeats = 5);

}  // namespace bench
