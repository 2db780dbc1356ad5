#include "moxing/image/planar_bitmap.h"

#include <immintrin.h>

#include <algorithm>

namespace mox::image {

void split_pixels(const uint8_t* pixels, int width, uint8_t* const planes[kPlanes]) {
  constexpr int kGroup = 32;
  if (width < kGroup) {
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < kPlanes; ++c) planes[c][x] = pixels[x * kPixelBytes + c];
    return;
  }
  // In each half of a vector, four pixels' reds, greens, blues and rest side by side.
  const __m256i by_channel =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int x = 0;; x = std::min(x + kGroup, width - kGroup)) {  // the last group overlaps the one before
    const auto four_and_four = [&](int i) {
      const auto* from = reinterpret_cast<const __m256i*>(pixels + static_cast<ptrdiff_t>(x) * kPixelBytes);
      return _mm256_shuffle_epi8(_mm256_loadu_si256(from + i), by_channel);
    };
    const __m256i a = four_and_four(0), b = four_and_four(1), c = four_and_four(2), d = four_and_four(3);
    const __m256i red_green0 = _mm256_unpacklo_epi32(a, b), red_green1 = _mm256_unpacklo_epi32(c, d);
    const __m256i blue0 = _mm256_unpackhi_epi32(a, b), blue1 = _mm256_unpackhi_epi32(c, d);
    const auto store = [&](int channel, __m256i values) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(planes[channel] + x),
                          _mm256_permutevar8x32_epi32(values, in_order));
    };
    store(0, _mm256_unpacklo_epi64(red_green0, red_green1));
    store(1, _mm256_unpackhi_epi64(red_green0, red_green1));
    store(2, _mm256_unpacklo_epi64(blue0, blue1));
    if (x == width - kGroup) break;
  }
}

void PlanarBitmap::set_row(int y, const uint8_t* from) {
  uint8_t* const planes[kPlanes] = {plane(y, 0), plane(y, 1), plane(y, 2)};
  split_pixels(from, width, planes);
}

PlanarBitmap planar(const Bitmap& bitmap) {
  PlanarBitmap result(bitmap.width, bitmap.height);
  for (int y = 0; y < bitmap.height; ++y) result.set_row(y, bitmap.row(y));
  return result;
}

}  // namespace mox::image
