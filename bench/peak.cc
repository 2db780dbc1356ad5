#include "bench/peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "ops/processor/processor.h"
#include "runtime/base/seconds.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

// Enough chains to hide the latency of two pipes (4 to 5 cycles), few enough for 16 registers.
constexpr int kChains = 12;
constexpr int64_t kRounds = 1 << 14;

// One call does kRounds * kChains vector operations and returns a value that depends on all of them.
__attribute__((target("avx512f"))) float multiply_add_avx512() {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.5F), term = _mm512_set1_ps(1.0F);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float multiply_add_avx2() {
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.5F), term = _mm256_set1_ps(1.0F);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

// body(thread) on `threads` threads that start together; seconds until the last has ended.
template <typename Body>
double run_together(int threads, const Body& body) {
  std::latch ready(threads + 1);
  std::vector<std::thread> pool;
  for (int thread = 0; thread < threads; ++thread)
    pool.emplace_back([&, thread] {
      ready.arrive_and_wait();
      body(thread);
    });
  ready.arrive_and_wait();
  const auto start = Clock::now();
  for (std::thread& thread : pool) thread.join();
  return mox::seconds_since(start);
}

}  // namespace

FmaPeak measure_fma_peak(int threads, double seconds) {
  const bool is_wide = mox::available_processor().lanes >= 16;
  const auto multiply_add = is_wide ? multiply_add_avx512 : multiply_add_avx2;
  const double flops_per_call = 2.0 * static_cast<double>(kRounds) * kChains * (is_wide ? 16 : 8);
  constexpr int kCallsPerWindow = 16;  // about a millisecond: shorter than a time slice of the scheduler
  std::vector<double> best_rates(static_cast<size_t>(threads));
  std::vector<float> results(static_cast<size_t>(threads));
  run_together(threads, [&](int thread) {
    const auto start = Clock::now();
    double best = 0;
    float result = 0;
    while (mox::seconds_since(start) < seconds) {
      const auto window = Clock::now();
      for (int call = 0; call < kCallsPerWindow; ++call) result += multiply_add();
      best = std::max(best, kCallsPerWindow * flops_per_call / mox::seconds_since(window));
    }
    best_rates[thread] = best;
    results[thread] = result;
  });
  volatile float sink =
      std::accumulate(results.begin(), results.end(), 0.0F);  // keeps the loops from being removed
  static_cast<void>(sink);
  return {.flops_per_second = std::accumulate(best_rates.begin(), best_rates.end(), 0.0),
          .instruction_set = is_wide ? "AVX-512" : "AVX2"};
}

double measure_memory_bandwidth(int threads, int repeats) {
  constexpr int64_t kElements = kBandwidthBytes / 3 / static_cast<int64_t>(sizeof(float));
  const auto make = [] { return std::make_unique_for_overwrite<float[]>(kElements); };
  const auto a = make(), b = make(), c = make();
  const auto over_share = [&](int thread, const auto& body) {
    for (int64_t i = kElements * thread / threads; i < kElements * (thread + 1) / threads; ++i) body(i);
  };
  run_together(threads, [&](int thread) { over_share(thread, [&](int64_t i) { a[i] = b[i] = c[i] = 1; }); });
  double best = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const float factor = static_cast<float>(repeat);
    const double seconds = run_together(
        threads, [&](int thread) { over_share(thread, [&](int64_t i) { a[i] = b[i] + factor * c[i]; }); });
    best = std::max(best, 3.0 * sizeof(float) * static_cast<double>(kElements) / seconds);
  }
  return best;
}

}  // namespace bench
