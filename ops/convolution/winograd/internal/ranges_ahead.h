// Reading whole images ahead.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "ops/convolution/winograd/internal/tiles.h"

namespace mox::winograd {

// Memory that will be read soon.
struct MemoryRange {
  const float* first = nullptr;
  int64_t floats = 0;
};

// How often correlate_images and accumulate_images fetch: for each point, and for each tile and block of
// channels that they transform.
inline int64_t fetches_of_correlation(const Problem& p, int64_t chunk) {
  return (p.tiles() + chunk - 1) / chunk * (p.points() + chunk * p.in_channels / p.lanes);
}
inline int64_t fetches_of_accumulation(const Problem& p, int64_t chunk) {
  return (p.tiles() + chunk - 1) / chunk * (p.points() + chunk * (p.in_channels + p.out_channels) / p.lanes);
}

// Ranges of memory, brought into the core's L2 cache in `shares` shares: memory has nothing to do while
// products are made.
class RangesAhead {
 public:
  RangesAhead(std::span<const MemoryRange> ranges, int64_t shares) : ranges_(ranges) {
    int64_t lines = 0;
    for (const MemoryRange& range : ranges) lines += (range.floats + kLine - 1) / kLine;
    share_ = (lines + shares - 1) / shares;
  }

  // Begins to fetch the next share.
  void fetch() {
    for (int64_t left = share_; left > 0 && !ranges_.empty();) {
      const MemoryRange& range = ranges_.front();
      const int64_t end = std::min(range.floats, at_ + left * kLine);
      left -= (end - at_ + kLine - 1) / kLine;
      for (; at_ < end; at_ += kLine) _mm_prefetch(range.first + at_, _MM_HINT_T1);
      if (at_ < range.floats) return;
      ranges_ = ranges_.subspan(1);
      at_ = 0;
    }
  }

 private:
  static constexpr int64_t kLine = 16;  // floats
  std::span<const MemoryRange> ranges_;
  int64_t share_ = 0, at_ = 0;  // lines, and floats of the first range
};

}  // namespace mox::winograd
