// Compiled with AVX-512 and its instructions for bfloat16 switched on; called only where the
// processor has them.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/convolution/winograd/lanes/products.h"
#include "ops/convolution/winograd/lanes/stages.h"

namespace mox::winograd {
namespace {

constexpr int kTile = 4, kWindow = 3, kOutputs = 2, kPoints = kTile * kTile, kTaps = kWindow * kWindow;

// The filters of 16 out-channels and a pair of in-channels: 18 values of each out-channel lie side by side,
// nine of one in-channel and nine of the next.
struct PlainFilter {
  static constexpr bool kIsTurned = false;
  const Problem& p;
  const BFloat16* filters;

  const BFloat16* row(int64_t pair, int64_t out, int64_t r) const {
    return filters + ((out + r) * p.in_channels + 2 * pair) * kTaps;
  }
  // From the first nine of all rows and the last nine to pairs.
  static __m512i order() {
    return _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5,
                            20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  }
};

// Turned by 180 degrees, with the channels exchanged: 18 values of two out-channels lie side by side; rows
// from the ninth on belong to the second in-channel.
struct TurnedFilter {
  static constexpr bool kIsTurned = true;
  const Problem& p;
  const BFloat16* filters;

  const BFloat16* row(int64_t pair, int64_t out, int64_t r) const {
    return filters + ((2 * pair + r / 8) * p.out_channels + out + r % 8 * 2) * kTaps;
  }
  static __m512i order() {
    return _mm512_set_epi16(31, 23, 15, 7, 30, 22, 14, 6, 29, 21, 13, 5, 28, 20, 12, 4, 27, 19, 11, 3, 26, 18,
                            10, 2, 25, 17, 9, 1, 24, 16, 8, 0);
  }
};

// Value by value of 16 rows of 18. Two values are moved as one float.
template <typename Filter>
inline void load_filters(const Filter& filter, int64_t pair, int64_t out, Vector* values) {
  alignas(64) float twos[kTaps][kLanes];
#pragma GCC unroll 4
  for (int64_t r = 0; r < kLanes; r += 4) {
    const float* row[4];
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) row[i] = reinterpret_cast<const float*>(filter.row(pair, out, r + i));
#pragma GCC unroll 2
    for (int t = 0; t < 8; t += 4) {
      __m128 a = _mm_loadu_ps(row[0] + t), b = _mm_loadu_ps(row[1] + t);
      __m128 c = _mm_loadu_ps(row[2] + t), d = _mm_loadu_ps(row[3] + t);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      _mm_store_ps(twos[t] + r, a);
      _mm_store_ps(twos[t + 1] + r, b);
      _mm_store_ps(twos[t + 2] + r, c);
      _mm_store_ps(twos[t + 3] + r, d);
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) std::memcpy(twos[8] + r + i, row[i] + 8, sizeof(float));
  }
#pragma GCC unroll 9
  for (int t = 0; t < kTaps; ++t) {
    const __m512i two = _mm512_load_si512(twos[t]);
    values[2 * t] = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, two, 16));
    values[2 * t + 1] = _mm512_castsi512_ps(_mm512_and_si512(two, _mm512_set1_epi32(0xffff0000)));
  }
}

// Panel by panel, so that what is written next to each other is written one after the other.
template <typename Filter>
void transform_pairs(const Filter& filter, float* u, int64_t first, int64_t last) {
  const Problem& p = filter.p;
  const __m512i order = Filter::order();
  for (int64_t panel = 0; panel < p.out_channels; panel += kPanel) {
    const int64_t width = std::min(kPanel, p.out_channels - panel);
    for (int64_t pair = first; pair < last; ++pair)
      for (int64_t out = 0; out < width; out += kLanes) {
        Vector values[2 * kTaps], transformed[2][kPoints];
        load_filters(filter, pair, panel + out, values);
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          Vector g[kTaps];
#pragma GCC unroll 9
          for (int t = 0; t < kTaps; ++t)
            g[t] = values[half * kTaps + (Filter::kIsTurned ? kTaps - 1 - t : t)];
          Vector* to = transformed[half];
          expand<kTile, kWindow>(g, [&](Vector value) { *to++ = value; });
        }
        float* to = u + panel * p.in_channels / 2 + pair * width + out;
        for (int i = 0; i < kPoints; ++i, to += p.filter_pair_stride())
          _mm512_storeu_si512(to, _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(
                                                                      transformed[1][i], transformed[0][i])));
      }
  }
}

void transform_filter(const Problem& p, const BFloat16* filters, float* u, int64_t first, int64_t last) {
  transform_pairs(PlainFilter{p, filters}, u, first, last);
}

void transform_turned_filter(const Problem& p, const BFloat16* filters, float* u, int64_t first,
                             int64_t last) {
  transform_pairs(TurnedFilter{p, filters}, u, first, last);
}

void correlate(const Problem& p, const BFloat16* x, const float* u, const float* bias, BFloat16* y,
               int64_t first, int64_t last, int64_t chunk, float* scratch) {
  const int64_t terms = p.in_channels / 2, u_stride = p.filter_pair_stride();
  const int64_t v_stride = point_stride(chunk * terms), product_stride = point_stride(chunk * kPanel);
  float* products = scratch + kPoints * v_stride;
  for (int64_t tile = first; tile < last; tile += chunk) {
    const int64_t there = std::min(chunk, last - tile), rows = (there + 5) / 6 * 6;
    transform_tiles<Writing::kCached>(
        p, ImageTiles<kTile, kOutputs, BFloat16>{p, x}, {tile, 0, rows, 0, p.in_channels / kLanes},
        {2 * v_stride, p.in_channels, kLanes}, reinterpret_cast<BFloat16*>(scratch));
    for (int64_t panel = 0; panel < p.out_channels; panel += kPanel) {
      const int64_t width = std::min(kPanel, p.out_channels - panel);
      for (int point = 0; point < kPoints; ++point)
        multiply<Pairs, TilesAre::kRows>(scratch + point * v_stride, terms,
                                         u + point * u_stride + panel * terms, width,
                                         products + point * product_stride, width, rows, width, terms, false);
      store_outputs<Writing::kCached, kTile, kOutputs>(
          p, products, {tile, 0, there, panel / kLanes, (panel + width) / kLanes},
          {product_stride, width, kLanes}, bias, y);
    }
  }
}

constexpr PairKernels kKernels{transform_filter, transform_turned_filter, correlate};

}  // namespace

const PairKernels& pair_kernels_avx512_bf16() { return kKernels; }

}  // namespace mox::winograd
