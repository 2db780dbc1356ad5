// PlanarBitmap: 8-bit pixels in memory, three bytes each, in planes a row: a row of the image is its reds,
// then its greens, then its blues. It is the form in which images are kept and resampled: a quarter less to
// read than Bitmap's four bytes a pixel, no unused channel in vectors, and any rows of an image are one piece
// of memory or of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "moxing/image/bitmap.h"

namespace mox::image {

constexpr int kPlanes = 3;

// So many bytes behind the last row may be read (vector code does).
constexpr size_t kRowSlackBytes = 64;

// Rows [first_row, first_row + rows) of an image. The memory, kRowSlackBytes behind them included, is
// somebody else's.
struct PlanarView {
  int width = 0, height = 0;  // of the whole image
  int first_row = 0, rows = 0;
  const uint8_t* pixels = nullptr;

  // Row y of the image: the reds; greens begin `width` bytes behind them, blues again.
  const uint8_t* row(int y) const {
    return pixels + static_cast<size_t>(y - first_row) * kPlanes * static_cast<size_t>(width);
  }
};

struct PlanarBitmap {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // height rows of kPlanes * width bytes, and kRowSlackBytes

  PlanarBitmap() = default;
  PlanarBitmap(int width, int height) : width(width), height(height) {
    pixels.resize(bytes() + kRowSlackBytes);
  }

  size_t stride() const { return kPlanes * static_cast<size_t>(width); }
  size_t bytes() const { return stride() * static_cast<size_t>(height); }
  std::span<const uint8_t> content() const { return {pixels.data(), bytes()}; }
  PlanarView view() const { return {width, height, 0, height, pixels.data()}; }

  // One channel (0 red, 1 green, 2 blue) of a row.
  uint8_t* plane(int y, int channel) {
    return pixels.data() +
           (static_cast<size_t>(y) * kPlanes + static_cast<size_t>(channel)) * static_cast<size_t>(width);
  }
  // Takes the row from `width` pixels as Bitmap has them.
  void set_row(int y, const uint8_t* from);
};

PlanarBitmap planar(const Bitmap& bitmap);

// `width` pixels as Bitmap has them into three rows of their channels. Reads and writes nothing beyond them.
void split_pixels(const uint8_t* pixels, int width, uint8_t* const planes[kPlanes]);

}  // namespace mox::image
