// malloc and its kin of this program count what they hand out, and leave the rest to the C library's own.
// Under a sanitizer, which has its own malloc, nothing is counted.
#include "tests/fuzz/harness/heap_peak.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace {

std::atomic<int64_t> held{0}, peak{0}, begin{0};

}  // namespace

namespace mox::fuzz {

void restart_heap_peak() {
  begin = held.load();
  peak = held.load();
}

size_t heap_peak() { return static_cast<size_t>(std::max<int64_t>(0, peak - begin)); }

}  // namespace mox::fuzz

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MOX_HAS_ITS_OWN_MALLOC 1
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(MOX_HAS_ITS_OWN_MALLOC)
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the C library's names
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t number, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);

static void count(int64_t bytes) {
  const int64_t now = held.fetch_add(bytes) + bytes;
  for (int64_t most = peak.load(); now > most && !peak.compare_exchange_weak(most, now);) continue;
}

static void* counted(void* block) {
  if (block) count(static_cast<int64_t>(malloc_usable_size(block)));
  return block;
}

void* malloc(size_t size) { return counted(__libc_malloc(size)); }
void* calloc(size_t number, size_t size) { return counted(__libc_calloc(number, size)); }
void* realloc(void* block, size_t size) {
  const auto before = block ? static_cast<int64_t>(malloc_usable_size(block)) : 0;
  void* moved = __libc_realloc(block, size);
  if (moved || size == 0) count(-before);
  return counted(moved);
}
void* memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
int posix_memalign(void** block, size_t alignment, size_t size) {
  void* made = counted(__libc_memalign(alignment, size));
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}
void free(void* block) {
  if (block) count(-static_cast<int64_t>(malloc_usable_size(block)));
  __libc_free(block);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
#endif
