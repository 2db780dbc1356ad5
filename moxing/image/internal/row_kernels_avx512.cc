// Compiled for AVX-512 and called only where the processor has it: nothing here may instantiate what others share.
#include <immintrin.h>

#include "moxing/image/internal/resample_axis.h"
#include "moxing/image/internal/row_kernels.h"

namespace mox::image::internal {
namespace {

constexpr int kGroupAvx512 = 16;

// kPairs: of rows; 0: as many as the source says.
template <int kPairs>
void combine_avx512(const SourceRows& source, int width, const Columns& out) {
  constexpr int kShift = kWeightBits - kFractionBits;
  const __m512i zero = _mm512_setzero_si512(), half = _mm512_set1_epi32(1 << (kShift - 1));
  // Packing leaves columns 0 - 7 and 8 - 15 of each 16 in two vectors.
  const __m512i front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const int pairs = kPairs > 0 ? kPairs : source.pairs;
  for (int plane = 0; plane < kPlanes; ++plane) {
    const ptrdiff_t offset = plane * source.plane_stride;
    int16_t* const columns = out.first + plane * out.plane_stride;
    for (int x = 0; x < width; x += 64) {
      __m512i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
      for (int pair = 0; pair < pairs; ++pair) {
        const __m512i a = _mm512_loadu_si512(source.rows[2 * pair] + offset + x);
        const __m512i b = _mm512_loadu_si512(source.rows[2 * pair + 1] + offset + x);
        int two_weights;
        __builtin_memcpy(&two_weights, source.weights + 2 * pair, sizeof two_weights);
        const __m512i scale = _mm512_set1_epi32(two_weights);
        const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
        const auto add = [&](__m512i sum, __m512i both) {
          return _mm512_add_epi32(sum, _mm512_madd_epi16(both, scale));
        };
        sum0 = add(sum0, _mm512_unpacklo_epi8(low, zero));
        sum1 = add(sum1, _mm512_unpackhi_epi8(low, zero));
        sum2 = add(sum2, _mm512_unpacklo_epi8(high, zero));
        sum3 = add(sum3, _mm512_unpackhi_epi8(high, zero));
      }
      const auto pack = [](__m512i a, __m512i b) {
        return _mm512_packs_epi32(_mm512_srai_epi32(a, kShift), _mm512_srai_epi32(b, kShift));
      };
      const __m512i low = pack(sum0, sum1), high = pack(sum2, sum3);
      _mm512_storeu_si512(columns + x, _mm512_permutex2var_epi64(low, front, high));
      _mm512_storeu_si512(columns + x + 32, _mm512_permutex2var_epi64(low, back, high));
    }
  }
}

void combine_rows_avx512(const SourceRows& source, int width, const Columns& out) {
  if (source.pairs == 1) return combine_avx512<1>(source, width, out);
  if (source.pairs == 2) return combine_avx512<2>(source, width, out);
  combine_avx512<0>(source, width, out);
}

// store(x, plane, pixels): 16 pixels, 32 bits each.
template <int kSteps, bool kWide, typename Store>
void resample_avx512(const Columns& columns, const TapsView& taps, Store&& store) {
  constexpr int kShift = kWeightBits + kFractionBits;
  const __m512i half = _mm512_set1_epi32(1 << (kShift - 1));
  const int steps = kSteps > 0 ? kSteps : taps.steps;
  const int16_t *weights = taps.weights, *places = taps.places;
  const int32_t* start = taps.starts;
  for (int x = 0; x < taps.outputs; x += kGroupAvx512, ++start, places += 32) {
    const __m512i place = _mm512_load_si512(places);
    __m512i sums[kPlanes] = {half, half, half};
    for (int step = 0; step < steps; ++step, weights += 32) {
      const __m512i scale = _mm512_load_si512(weights);
      for (int plane = 0; plane < kPlanes; ++plane) {
        const int16_t* const from = columns.first + plane * columns.plane_stride + *start + 2 * step;
        const __m512i front = _mm512_loadu_si512(from);
        const __m512i pairs = kWide ? _mm512_permutex2var_epi16(front, place, _mm512_loadu_si512(from + 32))
                                    : _mm512_permutexvar_epi16(place, front);
        sums[plane] = _mm512_add_epi32(sums[plane], _mm512_madd_epi16(pairs, scale));
      }
    }
    for (int plane = 0; plane < kPlanes; ++plane) store(x, plane, _mm512_srai_epi32(sums[plane], kShift));
  }
}

template <typename Store>
void resample_any_avx512(const Columns& columns, const TapsView& taps, Store&& store) {
  if (taps.wide) return resample_avx512<0, true>(columns, taps, store);
  if (taps.steps == 1) return resample_avx512<1, false>(columns, taps, store);
  if (taps.steps == 2) return resample_avx512<2, false>(columns, taps, store);
  resample_avx512<0, false>(columns, taps, store);
}

void to_bytes_avx512(const Columns& columns, const TapsView& taps, uint8_t* const planes[kPlanes]) {
  resample_any_avx512(columns, taps, [planes](int x, int plane, __m512i pixels) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(planes[plane] + x), _mm512_cvtepi32_epi8(pixels));
  });
}

void to_floats_avx512(const Columns& columns, const TapsView& taps, const FloatRow& row) {
  resample_any_avx512(columns, taps, [&](int x, int plane, __m512i pixels) {
    const __m512 values = _mm512_fmadd_ps(_mm512_cvtepi32_ps(pixels), _mm512_set1_ps(row.scale[plane]),
                                          _mm512_set1_ps(row.offset[plane]));
    float* const to = row.planes[plane] + x;
    const int left = taps.outputs - x;
    if (left < kGroupAvx512)
      _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << left) - 1), values);
    else if (row.streamed)
      _mm512_stream_ps(to, values);
    else
      _mm512_storeu_ps(to, values);
  });
}

}  // namespace

const RowKernels kAvx512RowKernels{combine_rows_avx512, to_bytes_avx512, to_floats_avx512};

}  // namespace mox::image::internal
