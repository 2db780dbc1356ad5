// Batch normalisation of the few images that Winograd's convolutions work on at a time (image_groups.h), in
// their blocks of channels.
#pragma once

#include <immintrin.h>

#include <limits>

#include "ops/convolution/winograd/internal/tiles.h"
#include "ops/normalisation/batch_norm_loops.h"

namespace mox::winograd {

// Per channel: relu((x - mean) * factor + offset [+ residual]).
struct Normalisation {
  const float *mean, *factor, *offset;
};

// The loops over a plane of one block of channels.
inline const normalisation::Loops<float>& loops_of(const Problem& p) {
  return p.lanes >= 16 ? normalisation::kFloatAvx512[0] : normalisation::kFloatAvx2[0];
}

// take(first channel, first value) for each plane of a block of channels of p's images.
template <typename Take>
void for_each_plane(const Problem& p, const Take& take) {
  const int64_t blocks = p.in_channels / p.lanes, pixels = p.in_height * p.in_width;
  for (int64_t plane = 0; plane < p.batch * blocks; ++plane)
    take(plane % blocks * p.lanes, plane * pixels * p.lanes);
}

// y = relu of p's normalised images; the residual may be null.
inline void normalise(const Problem& p, const float* x, const float* residual,
                      const Normalisation& normalisation, float* y) {
  for_each_plane(p, [&](int64_t channel, int64_t value) {
    loops_of(p).normalise(
        {.pixels = p.in_height * p.in_width,
         .width = p.lanes,
         .x = x + value,
         .residual = residual ? residual + value : nullptr,
         .y = y + value,
         .mean = normalisation.mean + channel,
         .factor = normalisation.factor + channel,
         .offset = normalisation.offset + channel,
         .activation = {
             .clips = true, .low = 0, .high = std::numeric_limits<float>::infinity(), .open = true}});
  });
}

// Copies p's images around the caches; `to` is aligned to 64 bytes.
inline void stream(const Problem& p, const float* from, float* to) {
  const int64_t floats = p.batch * p.in_channels * p.in_height * p.in_width;
  for (int64_t i = 0; i < floats; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
  _mm_sfence();
}

}  // namespace mox::winograd
