// The mask of dropout: one bit an element.
//
// Element i is bit i % 8 of byte i / 8; the mask is rounded up to whole tiles of 64 elements. Storing it
// costs 1/32 of the activation's memory; drawing it again in the backward pass would cost more
// than reading it.
//
// Tile t is drawn from the eight Philox counters 8 t ... 8 t + 7. In it, row r of eight elements takes its 16
// bits from word r / 2 (the lower half if r is even), column c from counter 8 t + c: bits stay in the vector
// lane of their element.
#pragma once

#include <cstdint>

#include "runtime/base/team.h"

namespace mox::internal {

inline constexpr int64_t kDropoutTile = 64;
inline constexpr int64_t kDropoutTileBytes = 8;

// Bytes of the mask for that many elements.
inline int64_t dropout_mask_bytes(int64_t elements) {
  return (elements + kDropoutTile - 1) / kDropoutTile * kDropoutTileBytes;
}

// How many of the 2^16 values of 16 bits keep an element: 65536 for rate 0, else in [1, 65535].
uint32_t dropout_keep_count(double rate);
float dropout_scale(double rate);

// Draws the mask and writes y = x * scale where it keeps, 0 elsewhere. y may be x.
void draw_dropout(const float* x, float* y, uint8_t* mask, int64_t elements, double rate, uint64_t seed,
                  uint64_t stream, const Team& team);

// y = x * scale where the mask keeps, 0 elsewhere. y may be x.
void apply_dropout(const float* x, const uint8_t* mask, float* y, int64_t elements, float scale,
                   const Team& team);

}  // namespace mox::internal
