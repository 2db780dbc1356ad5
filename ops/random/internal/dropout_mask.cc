#include "ops/random/internal/dropout_mask.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mox::internal {
namespace {

constexpr int64_t kTilesPerThread = 256;
constexpr int kColumns = 8;  // 32-bit lanes of a vector register
constexpr int kRows = 8;

// The two halves of the products of a constant with eight 32-bit numbers.
struct Products {
  __m256i low, high;
};
Products multiply(__m256i numbers, __m256i constant) {
  const __m256i even = _mm256_mul_epu32(numbers, constant);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(numbers, 32), constant);
  constexpr int kOddLanes = 0xAA;
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), kOddLanes),
          _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, kOddLanes)};
}

struct PhiloxWords {
  __m256i word[4];
};

__m256i broadcast(uint64_t value) { return _mm256_set1_epi32(static_cast<uint32_t>(value)); }

// Philox4x32-10 (runtime/base/random.h) of eight consecutive counters at once; the first is a multiple of 8,
// so that none of them carries into the upper half. Intrinsics, because compilers do not find the 32 x 32 ->
// 64 bit vector multiplication by themselves: their code takes twenty times as long.
PhiloxWords philox_of_eight(uint64_t key, uint64_t first_counter, uint64_t stream) {
  const __m256i multiplier0 = broadcast(0xD2511F53), multiplier1 = broadcast(0xCD9E8D57);
  const __m256i weyl0 = broadcast(0x9E3779B9), weyl1 = broadcast(0xBB67AE85);
  __m256i k0 = broadcast(key), k1 = broadcast(key >> 32);
  __m256i c0 = _mm256_add_epi32(broadcast(first_counter), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i c1 = broadcast(first_counter >> 32), c2 = broadcast(stream), c3 = broadcast(stream >> 32);
  for (int round = 0; round < 10; ++round) {
    const Products p0 = multiply(c0, multiplier0), p1 = multiply(c2, multiplier1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(p1.high, c1), k0);
    c2 = _mm256_xor_si256(_mm256_xor_si256(p0.high, c3), k1);
    c1 = p1.low;
    c3 = p0.low;
    k0 = _mm256_add_epi32(k0, weyl0);
    k1 = _mm256_add_epi32(k1, weyl1);
  }
  return {{c0, c1, c2, c3}};
}

void draw_tile(const PhiloxWords& random, uint32_t keep_count, uint8_t* mask) {
  const __m256i bound = broadcast(keep_count);
  for (int row = 0; row < kRows; ++row) {
    const __m256i word = random.word[row / 2];
    const __m256i drawn =
        row % 2 == 0 ? _mm256_and_si256(word, broadcast(0xffff)) : _mm256_srli_epi32(word, 16);
    const __m256i keep = _mm256_cmpgt_epi32(bound, drawn);
    mask[row] = static_cast<uint8_t>(_mm256_movemask_ps(_mm256_castsi256_ps(keep)));
  }
}

void apply_tile(const float* x, const uint8_t* mask, float* y, float scale) {
  const __m256i lane_bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256 scales = _mm256_set1_ps(scale);
  for (int row = 0; row < kRows; ++row) {
    const __m256i bits = _mm256_and_si256(_mm256_set1_epi32(mask[row]), lane_bits);
    const __m256 keep = _mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, lane_bits));
    const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(x + row * kColumns), scales);
    _mm256_storeu_ps(y + row * kColumns, _mm256_and_ps(keep, kept));
  }
}

// The last tile may be cut short: it goes through a buffer of full size.
void apply_part_of_tile(const float* x, const uint8_t* mask, float* y, int64_t count, float scale) {
  float buffer[kDropoutTile] = {};
  std::memcpy(buffer, x, count * sizeof(float));
  apply_tile(buffer, mask, buffer, scale);
  std::memcpy(y, buffer, count * sizeof(float));
}

template <typename Draw>
void for_tiles(const float* x, float* y, const uint8_t* mask, int64_t elements, float scale, const Team& team,
               Draw draw) {
  team.parallel_for(
      (elements + kDropoutTile - 1) / kDropoutTile, kTilesPerThread, [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; ++tile) {
          draw(tile);
          const int64_t first = tile * kDropoutTile, count = std::min(kDropoutTile, elements - first);
          const uint8_t* bits = mask + tile * kDropoutTileBytes;
          if (count == kDropoutTile)
            apply_tile(x + first, bits, y + first, scale);
          else
            apply_part_of_tile(x + first, bits, y + first, count, scale);
        }
      });
}

}  // namespace

uint32_t dropout_keep_count(double rate) {
  if (rate == 0) return 1 << 16;
  return static_cast<uint32_t>(std::clamp(std::round((1 - rate) * 65536), 1.0, 65535.0));
}

float dropout_scale(double rate) { return 65536.0 / dropout_keep_count(rate); }

void draw_dropout(const float* x, float* y, uint8_t* mask, int64_t elements, double rate, uint64_t seed,
                  uint64_t stream, const Team& team) {
  const uint32_t keep_count = dropout_keep_count(rate);
  for_tiles(x, y, mask, elements, dropout_scale(rate), team, [=](int64_t tile) {
    draw_tile(philox_of_eight(seed, tile * kColumns, stream), keep_count, mask + tile * kDropoutTileBytes);
  });
}

void apply_dropout(const float* x, const uint8_t* mask, float* y, int64_t elements, float scale,
                   const Team& team) {
  for_tiles(x, y, mask, elements, scale, team, [](int64_t) {});
}

}  // namespace mox::internal
