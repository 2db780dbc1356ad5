// Bitmap: 8-bit pixels in memory, four bytes each (red, green, blue, unused), the form in which images are
// decoded: one pixel is one 32-bit word. They are resampled and kept in another, see planar_bitmap.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mox::image {

constexpr int kPixelBytes = 4;

struct Bitmap {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // height rows of width pixels

  Bitmap() = default;
  Bitmap(int width, int height) : width(width), height(height) {
    pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * kPixelBytes);
  }
  size_t stride() const { return static_cast<size_t>(width) * kPixelBytes; }
  uint8_t* row(int y) { return pixels.data() + static_cast<size_t>(y) * stride(); }
  const uint8_t* row(int y) const { return pixels.data() + static_cast<size_t>(y) * stride(); }
};

// A rectangle of whole pixels: columns [x, x + width) of rows [y, y + height).
struct Box {
  int x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

}  // namespace mox::image
