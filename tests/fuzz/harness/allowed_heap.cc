#include <algorithm>

#include "tests/fuzz/harness/heap_peak.h"

namespace mox::fuzz {

[[gnu::weak]] size_t decoded_bytes(const unsigned char* /*data*/, size_t /*size*/) { return 0; }

[[gnu::weak]] size_t allowed_heap(const unsigned char* data, size_t size) {
  constexpr size_t kAtAnySize = 4 << 10;  // tables and buffers of a few hundred bytes each
  return 16 * std::max(size, decoded_bytes(data, size)) + (size < kSmallInput ? 1 << 20 : kAtAnySize);
}

}  // namespace mox::fuzz
