// Steps on the colours of a sample: planes of float32, red, green, blue, values in [0, 1]
// unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "moxing/image/augmentation.h"

namespace mox::image::internal {

// One row of three planes into one of their luma (ITU-R BT.601, rounded to 8 bits as Pillow's mode L): value
// * scale + offset, where value is 0 to 255.
void row_to_grey(const uint8_t* const* planes, int width, float scale, float offset, float* out);
// The same, rounded to bfloat16.
void row_to_grey(const uint8_t* const* planes, int width, float scale, float offset, BFloat16* out);

// Brightness, contrast, saturation and hue in random order, drawn from kJitterPosition on.
void jitter_colours(const ColourJitter& jitter, const RandomStream& random, size_t pixels,
                    float* const planes[3]);

}  // namespace mox::image::internal
