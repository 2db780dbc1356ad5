// Reading whole images ahead, for the winograd_*avx512.cc alone.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <span>

#include "ops/internal/winograd_tiles.h"

namespace mox::winograd {

// Ranges of memory, brought into the core's L2 cache in `shares` shares.
class RangesAhead {
 public:
  RangesAhead(std::span<const MemoryRange> ranges, int64_t shares) : ranges_(ranges) {
    int64_t lines = 0;
    for (const MemoryRange& range : ranges) lines += (range.floats + kLanes - 1) / kLanes;
    share_ = (lines + shares - 1) / shares;
  }

  // Begins to fetch the next share.
  void fetch() {
    for (int64_t left = share_; left > 0 && !ranges_.empty();) {
      const MemoryRange& range = ranges_.front();
      const int64_t end = std::min(range.floats, at_ + left * kLanes);
      left -= (end - at_ + kLanes - 1) / kLanes;
      for (; at_ < end; at_ += kLanes) _mm_prefetch(range.first + at_, _MM_HINT_T1);
      if (at_ < range.floats) return;
      ranges_ = ranges_.subspan(1);
      at_ = 0;
    }
  }

 private:
  std::span<const MemoryRange> ranges_;
  int64_t share_ = 0, at_ = 0;  // lines, and floats of the first range
};

}  // namespace mox::winograd
