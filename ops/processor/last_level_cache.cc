#include "ops/processor/last_level_cache.h"

#include <cpuid.h>
#include <unistd.h>

#include <algorithm>

namespace mox {
namespace {

constexpr int64_t kUsual = int64_t{32} << 20;

bool is_of_amd() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0 && ebx == signature_AMD_ebx &&
         ecx == signature_AMD_ecx && edx == signature_AMD_edx;
}

// AMD64 Architecture Programmer's Manual, volume 3, E.4.17: a cache for each subleaf, until one is of type 0.
int64_t level_3_of_complex() {
  constexpr unsigned kCacheProperties = 0x8000001d, kMostCaches = 8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  for (unsigned cache = 0; cache < kMostCaches; ++cache) {
    if (__get_cpuid_count(kCacheProperties, cache, &eax, &ebx, &ecx, &edx) == 0 || (eax & 0x1f) == 0)
      return 0;
    if ((eax >> 5 & 7) != 3) continue;
    const int64_t ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 0x3ff) + 1, line = (ebx & 0xfff) + 1;
    return ways * partitions * line * (int64_t{ecx} + 1);
  }
  return 0;
}

}  // namespace

int64_t last_level_cache_of(const CacheReport& report) {
  if (report.is_amd && report.of_a_complex > 0) return report.of_a_complex;
  if (report.reported <= 0) return kUsual;
  return report.is_amd ? std::min(report.reported, kUsual) : report.reported;
}

CacheReport cache_report() {
  const bool is_amd = is_of_amd();
  return {.is_amd = is_amd,
          .reported = sysconf(_SC_LEVEL3_CACHE_SIZE),
          .of_a_complex = is_amd ? level_3_of_complex() : 0};
}

}  // namespace mox
