#include "moxing/image/planar_bitmap.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/moxing/image/images.h"

namespace mox::image {
namespace {

TEST(PlanarBitmap, HasThePixelsOfABitmap) {
  const Bitmap bitmap = picture(45, 3);
  PlanarBitmap planes = planar(bitmap);
  EXPECT_EQ(planes.content().size(), 45u * 3 * 3);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 45; ++x)
      for (int c = 0; c < 3; ++c) {
        ASSERT_EQ(planes.plane(y, c)[x], bitmap.row(y)[x * kPixelBytes + c]);
        ASSERT_EQ(planes.view().row(y)[c * 45 + x], bitmap.row(y)[x * kPixelBytes + c]);
      }
}

// Of each width, memory that ends with it: AddressSanitizer sees what lies beyond.
TEST(PlanarBitmap, SplitsRowsOfAnyWidth) {
  for (int width = 1; width <= 130; ++width) {
    SCOPED_TRACE(width);
    const auto pixels = std::make_unique<uint8_t[]>(static_cast<size_t>(width) * kPixelBytes);
    for (int i = 0; i < width * kPixelBytes; ++i) pixels[i] = static_cast<uint8_t>(7 * i + i / 251);
    std::unique_ptr<uint8_t[]> memory[kPlanes];
    uint8_t* planes[kPlanes];
    for (int c = 0; c < kPlanes; ++c) {
      memory[c] = std::make_unique<uint8_t[]>(static_cast<size_t>(width));
      planes[c] = memory[c].get();
    }
    split_pixels(pixels.get(), width, planes);
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < kPlanes; ++c) ASSERT_EQ(planes[c][x], pixels[x * kPixelBytes + c]) << x << " " << c;
  }
}

}  // namespace
}  // namespace mox::image
