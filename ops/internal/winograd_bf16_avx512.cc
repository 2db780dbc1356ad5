// Compiled with AVX-512 and its instructions for bfloat16 switched on; called only where the processor has them.
#include <immintrin.h>

#include <algorithm>

#include "ops/internal/winograd_products.h"
#include "ops/internal/winograd_stages.h"

namespace mox::winograd {
namespace {

constexpr int kTile = 4, kWindow = 3, kOutputs = 2, kPoints = kTile * kTile;

// The values of 16 channels of two neighbours as pairs.
inline void write_pairs(float* to, Vector first, Vector second) {
  const __m512i interleaved = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                               23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(interleaved, (__m512i)_mm512_cvtne2ps_pbh(second, first)));
}

// A pair of in-channels after the other for 16 out-channels: of what lies in between, the next pair is in the cache so.
template <typename Tap>
void transform_pairs(const Problem& p, float* u, int64_t first, int64_t last, const Tap& tap) {
  constexpr int kTaps = kWindow * kWindow;
  for (int64_t out = 0; out < p.out_channels; out += kLanes) {
    const int64_t panel = out / kPanel * kPanel, width = std::min(kPanel, p.out_channels - panel);
    for (int64_t pair = first; pair < last; ++pair) {
      Vector transformed[2][kPoints];
      for (int64_t half = 0; half < 2; ++half) {
        BFloat16 lanes[kTaps][kLanes];
        for (int64_t lane = 0; lane < kLanes; ++lane)
          for (int t = 0; t < kTaps; ++t) lanes[t][lane] = tap(2 * pair + half, out + lane, t);
        Vector g[kTaps];
        for (int t = 0; t < kTaps; ++t) g[t] = load_channels(0xffff, lanes[t]);
        Vector* to = transformed[half];
        expand<kTile, kWindow>(g, [&](Vector value) { *to++ = value; });
      }
      float* to = u + panel * p.in_channels / 2 + pair * width + out - panel;
      for (int i = 0; i < kPoints; ++i)
        write_pairs(to + i * p.filter_pair_stride(), transformed[0][i], transformed[1][i]);
    }
  }
}

void transform_filter(const Problem& p, const BFloat16* filters, float* u, int64_t first, int64_t last) {
  transform_pairs(p, u, first, last, [&](int64_t in, int64_t out, int tap) {
    return filters[(out * p.in_channels + in) * kWindow * kWindow + tap];
  });
}

void transform_turned_filter(const Problem& p, const BFloat16* filters, float* u, int64_t first,
                             int64_t last) {
  transform_pairs(p, u, first, last, [&](int64_t in, int64_t out, int tap) {
    return filters[(in * p.out_channels + out) * kWindow * kWindow + (kWindow * kWindow - 1 - tap)];
  });
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
