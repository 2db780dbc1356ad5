// What the conversions of filter_conversion.h have in common (ops/processor/lanes.h).
//
// A vector of plain memory goes along the in-channels and taps of one out-channel. As many rows of them as
// lanes, transposed in registers, are vectors along the out-channels, one for each in-channel and tap: what
// the layouts with `out` innermost consist of, whatever the window. The others pass through such vectors too
// if they have more than one tap, and are transposed back.
#pragma once

#include <algorithm>

#include "ops/convolution/filter_conversion.h"
#include "ops/processor/lanes.h"

namespace mox::filter_conversion {
inline namespace MOX_LANES {

using namespace lanes;

template <Writing kWriting>
inline void write(float* to, Vector value) {
  if constexpr (kWriting == Writing::kStreamed)
    stream(to, value);
  else
    store(to, value);
}

// v[r] = the first kCount numbers at `rows`, r rows of `row_floats` on, and zeros. Fetches what is there in
// the next rows, which follow once the tiles beside these are done: rows are too short for the processor to
// find out.
template <int kCount>
inline void load_rows(const float* rows, int64_t row_floats, Vector* v) {
#pragma GCC unroll 16
  for (int64_t r = 0; r < kLanes; ++r) {
    v[r] = load_first<kCount>(rows + r * row_floats);
    _mm_prefetch(reinterpret_cast<const char*>(rows + (r + kLanes) * row_floats), _MM_HINT_T1);
  }
}

// Walks the columns of a block's plain rows, (in-channel, tap), and knows which line
// [tap][in-channel] each is.
class LineOfColumn {
 public:
  explicit LineOfColumn(int64_t taps) : taps_(taps) {}
  int64_t floats() const { return line_ * kLanes; }
  void advance() {
    line_ += kLanes;
    if (++tap_ < taps_) return;
    tap_ = 0;
    line_ += 1 - taps_ * kLanes;
  }

 private:
  int64_t taps_, tap_ = 0, line_ = 0;
};

// What one call of a body converts: its first element in either memory, and its blocks along the in-channels.
struct Tile {
  int64_t plain, blocked, blocks;
};

// kBlocks: of a tile, at most.
template <Writing kWriting, int64_t kBlocks, typename Body>
inline void for_each_tile(const Filter& f, int64_t first, int64_t last, const Body& body) {
  const int64_t strips = f.strips(), block = f.block;
  for (int64_t index = first; index < last; ++index) {
    const int64_t out = f.is_out_outermost ? index / strips : index % f.out_blocks();
    const int64_t strip = f.is_out_outermost ? index % strips : index / f.out_blocks();
    const int64_t end = std::min((strip + 1) * f.strip_blocks(), f.in_blocks());
    for (int64_t in = strip * f.strip_blocks(); in < end; in += kBlocks)
      body(Tile{(out * f.in_channels + in) * block * f.taps, out * f.out_stride() + in * f.in_stride(),
                std::min(kBlocks, end - in)});
  }
  if constexpr (kWriting == Writing::kStreamed) finish_streams();
}

}  // namespace MOX_LANES
}  // namespace mox::filter_conversion
