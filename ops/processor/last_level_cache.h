// The last-level cache that a core works with, which decides what is worth keeping there.
#pragma once

#include <cstdint>

namespace mox {

// What a processor says of its caches.
struct CacheReport {
  bool is_amd = false;
  int64_t reported = 0;      // bytes, as sysconf(_SC_LEVEL3_CACHE_SIZE) says; <= 0 where it does not know
  int64_t of_a_complex = 0;  // bytes, as CPUID 8000001D of AMD's processors says; 0 where it does not
};

// Bytes, at least 1. AMD's cores share a cache with the few cores of their complex alone, and sysconf may
// report the sum of the caches of all complexes (glibc 2.36 does: 508 MiB for sixteen of 32 MiB); virtual
// machines often hide how it is cut. Where nothing is known, and of AMD's sums, 32 MiB are taken: what a
// complex of eight cores has from Zen 3 on.
int64_t last_level_cache_of(const CacheReport& report);

// Of this processor.
CacheReport cache_report();

}  // namespace mox
