// Compiled for AVX-512 and called only where the processor has it: nothing here may instantiate
// what others share.
#include <immintrin.h>

#include "moxing/image/internal/resample_axis.h"
#include "moxing/image/internal/row_kernels.h"

namespace mox::image::internal {
namespace {

constexpr int kGroupAvx512 = 16;

// kRows: 0: as many as the source says.
template <int kRows>
void combine_few_avx512(const SourceRows& source, int width, const Columns& out) {
  const int rows = kRows > 0 ? kRows : source.count;
  const __m512i upper = _mm512_set1_epi16(static_cast<int16_t>(0xff00));
  const __m512i half = _mm512_set1_epi16(static_cast<int16_t>((rows + 1) / 2));
  // Interleaving leaves columns 0 - 7 and 8 - 15 of each 16 in two vectors.
  const __m512i front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  __m512i weights[kFewRows];
  for (int i = 0; i < rows; ++i)
    weights[i] = _mm512_set1_epi16(static_cast<int16_t>(few_rows_weight(source.weights[i])));
  for (int plane = 0; plane < kPlanes; ++plane) {
    const ptrdiff_t offset = plane * source.plane_stride;
    int16_t* const columns = out.first + plane * out.plane_stride;
    for (int x = 0; x < width; x += 64) {
      for (int i = 0; i < source.ahead_count; ++i) __builtin_prefetch(source.ahead[i] + offset + x);
      __m512i even = half, odd = half;
      for (int i = 0; i < rows; ++i) {
        const __m512i pixels = _mm512_loadu_si512(source.rows[i] + offset + x);
        even = _mm512_add_epi16(even, _mm512_mulhi_epu16(_mm512_slli_epi16(pixels, 8), weights[i]));
        odd = _mm512_add_epi16(odd, _mm512_mulhi_epu16(_mm512_and_si512(pixels, upper), weights[i]));
      }
      even = _mm512_srli_epi16(even, 1);
      odd = _mm512_srli_epi16(odd, 1);
      const __m512i low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
      _mm512_storeu_si512(columns + x, _mm512_permutex2var_epi64(low, front, high));
      _mm512_storeu_si512(columns + x + 32, _mm512_permutex2var_epi64(low, back, high));
    }
  }
}

void combine_rows_avx512(const SourceRows& source, int width, const Columns& out) {
  if (source.count == 2) return combine_few_avx512<2>(source, width, out);
  if (source.count == 3) return combine_few_avx512<3>(source, width, out);
  if (source.count == 4) return combine_few_avx512<4>(source, width, out);
  if (source.count <= kFewRows) return combine_few_avx512<0>(source, width, out);
  kAvx2RowKernels.combine(source, width, out);
}

// store(x, plane, pixels): 16 pixels, 32 bits each.
template <int kSteps, bool kWide, typename Store>
void resample_avx512(const Columns& columns, const TapsView& taps, Store&& store) {
  constexpr int kShift = kWeightBits + kFractionBits;
  const __m512i half = _mm512_set1_epi32(1 << (kShift - 1)), two = _mm512_set1_epi16(2);
  const int steps = kSteps > 0 ? kSteps : taps.steps;
  const int16_t *weights = taps.weights, *places = taps.places;
  const int32_t* start = taps.starts;
  for (int x = 0; x < taps.outputs; x += kGroupAvx512, ++start, places += 32) {
    __m512i place = _mm512_load_si512(places);
    __m512i sums[kPlanes] = {half, half, half}, low[kPlanes], high[kPlanes];
    for (int plane = 0; plane < kPlanes; ++plane) {
      const int16_t* const from = columns.first + plane * columns.plane_stride + *start;
      low[plane] = _mm512_loadu_si512(from);
      if (kWide) high[plane] = _mm512_loadu_si512(from + 32);
    }
    for (int step = 0; step < steps; ++step, weights += 32, place = _mm512_add_epi16(place, two)) {
      const __m512i scale = _mm512_load_si512(weights);
      for (int plane = 0; plane < kPlanes; ++plane) {
        const __m512i pairs = kWide ? _mm512_permutex2var_epi16(low[plane], place, high[plane])
                                    : _mm512_permutexvar_epi16(place, low[plane]);
        sums[plane] = _mm512_add_epi32(sums[plane], _mm512_madd_epi16(pairs, scale));
      }
    }
    for (int plane = 0; plane < kPlanes; ++plane) store(x, plane, _mm512_srai_epi32(sums[plane], kShift));
  }
}

template <typename Store>
void resample_any_avx512(const Columns& columns, const TapsView& taps, Store&& store) {
  if (taps.wide && taps.steps == 2) return resample_avx512<2, true>(columns, taps, store);
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

template <typename Value>
__m512 normalised_avx512(__m512i pixels, const NumberRow<Value>& row, int plane) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(pixels), _mm512_set1_ps(row.scale[plane]),
                         _mm512_set1_ps(row.offset[plane]));
}

// Of the outputs of a group, those that are wanted.
__mmask16 first_outputs(int count) { return static_cast<__mmask16>((1u << count) - 1); }

void to_floats_avx512(const Columns& columns, const TapsView& taps, const NumberRow<float>& row) {
  resample_any_avx512(columns, taps, [&](int x, int plane, __m512i pixels) {
    const __m512 values = normalised_avx512(pixels, row, plane);
    float* const to = row.planes[plane] + x;
    const int left = taps.outputs - x;
    if (left < kGroupAvx512)
      _mm512_mask_storeu_ps(to, first_outputs(left), values);
    else if (row.streamed)
      _mm512_stream_ps(to, values);
    else
      _mm512_storeu_ps(to, values);
  });
}

// As BFloat16's constructor rounds, in the lower half of each 32 bits. (AVX512_BF16 has a conversion, but not
// every processor with AVX-512, and it makes zeros of denormal numbers.)
__m512i bfloat16_avx512(__m512 values) {
  const __m512i raw = _mm512_castps_si512(values), upper = _mm512_srli_epi32(raw, 16);
  const __m512i half =
      _mm512_add_epi32(_mm512_and_si512(upper, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
  const __m512i nearest = _mm512_srli_epi32(_mm512_add_epi32(raw, half), 16);
  return _mm512_mask_or_epi32(nearest, _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q), upper,
                              _mm512_set1_epi32(0x40));
}

void to_bfloat16s_avx512(const Columns& columns, const TapsView& taps, const NumberRow<BFloat16>& row) {
  resample_any_avx512(columns, taps, [&](int x, int plane, __m512i pixels) {
    const __m512i bits = bfloat16_avx512(normalised_avx512(pixels, row, plane));
    BFloat16* const to = row.planes[plane] + x;
    const int left = taps.outputs - x;
    if (left < kGroupAvx512)
      _mm512_mask_cvtepi32_storeu_epi16(to, first_outputs(left), bits);
    else if (row.streamed)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(bits));
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(bits));
  });
}

}  // namespace

const RowKernels kAvx512RowKernels{combine_rows_avx512, to_bytes_avx512, to_floats_avx512,
                                   to_bfloat16s_avx512};

}  // namespace mox::image::internal
