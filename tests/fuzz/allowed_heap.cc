#include "tests/fuzz/heap_peak.h"

namespace mox::fuzz {

[[gnu::weak]] size_t allowed_heap(const unsigned char* /*data*/, size_t size) {
  return 16 * size + (1 << 20);
}

}  // namespace mox::fuzz
