// Steps on the colours of a sample: planes of float32, red, green, blue, values in [0, 1] unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "moxing/image/augmentation.h"

namespace mox::image::internal {

// How the planes are written. kPastCaches is faster for what is not read again soon, in particular for more than the
// caches hold: memory is written without having been read. Others see it after finish_stores().
enum class Stores { kCached, kPastCaches };
void finish_stores();

// One row of pixels into three planes: value * scale[c] + offset[c], where value is 0 to 255. The bits are the same for
// both kinds of stores; past the caches go vectors that are aligned.
void row_to_planes(const uint8_t* pixels, int width, const float scale[3], const float offset[3],
                   float* const planes[3], Stores stores = Stores::kCached);

// The same of the luma (ITU-R BT.601, rounded to 8 bits as Pillow's mode L) into one plane.
void row_to_grey(const uint8_t* pixels, int width, float scale, float offset, float* plane);

// Brightness, contrast, saturation and hue in random order, drawn from kJitterPosition on.
void jitter_colours(const ColourJitter& jitter, const RandomStream& random, size_t pixels,
                    float* const planes[3]);

}  // namespace mox::image::internal
