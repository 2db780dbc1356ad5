#include "moxing/image/internal/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "moxing/image/internal/crop.h"
#include "runtime/tensor/round_to_bfloat16.h"

namespace mox::image::internal {
namespace {

float clamped(float value) { return std::clamp(value, 0.0f, 1.0f); }

float luma(float red, float green, float blue) { return 0.299f * red + 0.587f * green + 0.114f * blue; }

void change_brightness(float factor, size_t pixels, float* const planes[3]) {
  for (int c = 0; c < 3; ++c)
    for (size_t i = 0; i < pixels; ++i) planes[c][i] = clamped(planes[c][i] * factor);
}

void change_contrast(float factor, size_t pixels, float* const planes[3]) {
  double sum = 0;
  for (size_t i = 0; i < pixels; ++i) sum += luma(planes[0][i], planes[1][i], planes[2][i]);
  const float mean = sum / pixels;
  for (int c = 0; c < 3; ++c)
    for (size_t i = 0; i < pixels; ++i) planes[c][i] = clamped(mean + (planes[c][i] - mean) * factor);
}

void change_saturation(float factor, size_t pixels, float* const planes[3]) {
  for (size_t i = 0; i < pixels; ++i) {
    const float grey = luma(planes[0][i], planes[1][i], planes[2][i]);
    for (int c = 0; c < 3; ++c) planes[c][i] = clamped(grey + (planes[c][i] - grey) * factor);
  }
}

// Turns the hue in the HSV hexagon, `turn` in parts of the circle.
void change_hue(float turn, size_t pixels, float* const planes[3]) {
  for (size_t i = 0; i < pixels; ++i) {
    const float red = planes[0][i], green = planes[1][i], blue = planes[2][i];
    const float high = std::max({red, green, blue}), low = std::min({red, green, blue}), chroma = high - low;
    if (chroma <= 0) continue;
    float hue = 0;  // in sixths
    if (high == red)
      hue = (green - blue) / chroma;
    else if (high == green)
      hue = (blue - red) / chroma + 2;
    else
      hue = (red - green) / chroma + 4;
    hue += 6 * turn;
    hue -= 6 * std::floor(hue / 6);
    const auto channel = [&](float at) {  // of the sector in which the channel is at its highest
      float distance = std::abs(hue - at);
      distance = std::min(distance, 6 - distance);
      return low + chroma * std::clamp(2 - distance, 0.0f, 1.0f);
    };
    planes[0][i] = channel(0);
    planes[1][i] = channel(2);
    planes[2][i] = channel(4);
  }
}

}  // namespace

void row_to_grey(const uint8_t* const* planes, int width, float scale, float offset, float* out) {
  for (int x = 0; x < width; ++x) {
    const uint32_t grey =
        (19595u * planes[0][x] + 38470u * planes[1][x] + 7471u * planes[2][x] + 0x8000u) >> 16;
    out[x] = std::fma(static_cast<float>(grey), scale, offset);
  }
}

void row_to_grey(const uint8_t* const* planes, int width, float scale, float offset, BFloat16* out) {
  constexpr int kPart = 256;
  float values[kPart];
  for (int x = 0; x < width; x += kPart) {
    const int count = std::min(kPart, width - x);
    const uint8_t* const part[] = {planes[0] + x, planes[1] + x, planes[2] + x};
    row_to_grey(part, count, scale, offset, values);
    round_to_bfloat16({values, static_cast<size_t>(count)}, out + x);
  }
}

void jitter_colours(const ColourJitter& jitter, const RandomStream& random, size_t pixels,
                    float* const planes[3]) {
  const auto between = [&](uint64_t position, float middle, float spread) {
    const double unit = random.uniform(kJitterPosition + position);
    return middle + spread * static_cast<float>(2 * unit - 1);
  };
  std::array<int, 4> order{0, 1, 2, 3};
  for (uint64_t i = 3; i > 0; --i) std::swap(order[i], order[random.below(kJitterPosition + 8 + i, i + 1)]);
  for (int step : order) {
    if (step == 0 && jitter.brightness > 0)
      change_brightness(std::max(0.0f, between(0, 1, jitter.brightness)), pixels, planes);
    if (step == 1 && jitter.contrast > 0)
      change_contrast(std::max(0.0f, between(1, 1, jitter.contrast)), pixels, planes);
    if (step == 2 && jitter.saturation > 0)
      change_saturation(std::max(0.0f, between(2, 1, jitter.saturation)), pixels, planes);
    if (step == 3 && jitter.hue > 0) change_hue(between(3, 0, jitter.hue), pixels, planes);
  }
}

}  // namespace mox::image::internal
