// Asking for pixels ahead of their use: parts of rows are too short for the processor to see by itself where they go on. They go to
// the second-level cache; the first would not hold so many.
#pragma once

#include "moxing/image/planar_bitmap.h"

namespace mox::image::internal {

// How many rows ahead.
constexpr int kRowsAhead = 16;

// Row y of the image, the columns of `box`.
inline void prefetch_row(const PlanarView& image, const Box& box, int y) {
  constexpr int kLine = 64, kSecondLevel = 2;
  for (int plane = 0; plane < kPlanes; ++plane) {
    const uint8_t* const from = image.row(y) + static_cast<ptrdiff_t>(plane) * image.width + box.x;
    for (int at = 0; at < box.width; at += kLine) __builtin_prefetch(from + at, 0, kSecondLevel);
  }
}

}  // namespace mox::image::internal
