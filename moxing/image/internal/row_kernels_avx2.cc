#include <immintrin.h>

#include <cstring>

#include "moxing/image/internal/resample_axis.h"
#include "moxing/image/internal/row_kernels.h"

namespace mox::image::internal {
namespace {

constexpr int kGroupAvx2 = 8;

// Columns 0 - 7 and 8 - 15 of each 16, in order.
void store_columns(__m256i low, __m256i high, int16_t* columns) {
  auto* const to = reinterpret_cast<__m256i*>(columns);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
}

__m256i load_pixels(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// kRows: 0: as many as the source says.
template <int kRows>
void combine_few_avx2(const SourceRows& source, int width, const Columns& out) {
  const int rows = kRows > 0 ? kRows : source.count;
  const __m256i upper = _mm256_set1_epi16(static_cast<int16_t>(0xff00));
  const __m256i half = _mm256_set1_epi16(static_cast<int16_t>((rows + 1) / 2));
  __m256i weights[kFewRows];
  for (int i = 0; i < rows; ++i)
    weights[i] = _mm256_set1_epi16(static_cast<int16_t>(few_rows_weight(source.weights[i])));
  for (int plane = 0; plane < kPlanes; ++plane) {
    const ptrdiff_t offset = plane * source.plane_stride;
    int16_t* const columns = out.first + plane * out.plane_stride;
    for (int x = 0; x < width; x += 32) {
      for (int i = 0; x % 64 == 0 && i < source.ahead_count; ++i)
        __builtin_prefetch(source.ahead[i] + offset + x);
      __m256i even = half, odd = half;
      for (int i = 0; i < rows; ++i) {
        const __m256i pixels = load_pixels(source.rows[i] + offset + x);
        even = _mm256_add_epi16(even, _mm256_mulhi_epu16(_mm256_slli_epi16(pixels, 8), weights[i]));
        odd = _mm256_add_epi16(odd, _mm256_mulhi_epu16(_mm256_and_si256(pixels, upper), weights[i]));
      }
      even = _mm256_srli_epi16(even, 1);
      odd = _mm256_srli_epi16(odd, 1);
      store_columns(_mm256_unpacklo_epi16(even, odd), _mm256_unpackhi_epi16(even, odd), columns + x);
    }
  }
}

void combine_many_avx2(const SourceRows& source, int width, const Columns& out) {
  constexpr int kShift = kWeightBits - kFractionBits;
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (kShift - 1));
  for (int plane = 0; plane < kPlanes; ++plane) {
    const ptrdiff_t offset = plane * source.plane_stride;
    int16_t* const columns = out.first + plane * out.plane_stride;
    for (int x = 0; x < width; x += 32) {
      __m256i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
      for (int row = 0; row < source.count; row += 2) {
        const __m256i a = load_pixels(source.rows[row] + offset + x);
        const __m256i b = load_pixels(source.rows[row + 1] + offset + x);
        int two_weights;
        std::memcpy(&two_weights, source.weights + row, sizeof two_weights);
        const __m256i scale = _mm256_set1_epi32(two_weights);
        const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
        const auto add = [&](__m256i sum, __m256i both) {
          return _mm256_add_epi32(sum, _mm256_madd_epi16(both, scale));
        };
        sum0 = add(sum0, _mm256_unpacklo_epi8(low, zero));
        sum1 = add(sum1, _mm256_unpackhi_epi8(low, zero));
        sum2 = add(sum2, _mm256_unpacklo_epi8(high, zero));
        sum3 = add(sum3, _mm256_unpackhi_epi8(high, zero));
      }
      const auto pack = [](__m256i a, __m256i b) {
        return _mm256_packs_epi32(_mm256_srai_epi32(a, kShift), _mm256_srai_epi32(b, kShift));
      };
      store_columns(pack(sum0, sum1), pack(sum2, sum3), columns + x);
    }
  }
}

void combine_rows_avx2(const SourceRows& source, int width, const Columns& out) {
  if (source.count == 2) return combine_few_avx2<2>(source, width, out);
  if (source.count == 3) return combine_few_avx2<3>(source, width, out);
  if (source.count == 4) return combine_few_avx2<4>(source, width, out);
  if (source.count <= kFewRows) return combine_few_avx2<0>(source, width, out);
  combine_many_avx2(source, width, out);
}

// Columns `start` to `start` + 3 of two outputs.
__m128i eight_columns(const int16_t* from, int32_t start, int32_t next) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + start)),
                            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + next)));
}

// store(x, plane, pixels): 8 pixels, 32 bits each.
template <int kSteps, typename Store>
void resample_avx2(const Columns& columns, const TapsView& taps, Store&& store) {
  constexpr int kShift = kWeightBits + kFractionBits;
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1)), zero = _mm256_setzero_si256();
  const int steps = kSteps > 0 ? kSteps : taps.steps;
  const int16_t* weights = taps.weights;
  const int32_t* start = taps.starts;
  for (int x = 0; x < taps.outputs; x += kGroupAvx2, start += kGroupAvx2) {
    __m256i sums[kPlanes][2] = {{zero, zero}, {zero, zero}, {zero, zero}};
    for (int step = 0; step < steps; ++step, weights += 32) {
      const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights));
      const __m256i second = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights + 16));
      for (int plane = 0; plane < kPlanes; ++plane) {
        const int16_t* const from = columns.first + plane * columns.plane_stride + 4 * step;
        const __m256i a = _mm256_set_m128i(eight_columns(from, start[4], start[5]),
                                           eight_columns(from, start[0], start[1]));
        const __m256i b = _mm256_set_m128i(eight_columns(from, start[6], start[7]),
                                           eight_columns(from, start[2], start[3]));
        sums[plane][0] = _mm256_add_epi32(sums[plane][0], _mm256_madd_epi16(a, first));
        sums[plane][1] = _mm256_add_epi32(sums[plane][1], _mm256_madd_epi16(b, second));
      }
    }
    for (int plane = 0; plane < kPlanes; ++plane)
      store(x, plane,
            _mm256_srai_epi32(_mm256_add_epi32(_mm256_hadd_epi32(sums[plane][0], sums[plane][1]), half),
                              kShift));
  }
}

template <typename Store>
void resample_any_avx2(const Columns& columns, const TapsView& taps, Store&& store) {
  if (taps.steps == 1) return resample_avx2<1>(columns, taps, store);
  if (taps.steps == 2) return resample_avx2<2>(columns, taps, store);
  resample_avx2<0>(columns, taps, store);
}

void to_bytes_avx2(const Columns& columns, const TapsView& taps, uint8_t* const planes[kPlanes]) {
  resample_any_avx2(columns, taps, [planes](int x, int plane, __m256i pixels) {
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(pixels), _mm256_extracti128_si256(pixels, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(planes[plane] + x), _mm_packus_epi16(words, words));
  });
}

template <typename Value>
__m256 normalised_avx2(__m256i pixels, const NumberRow<Value>& row, int plane) {
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(pixels), _mm256_set1_ps(row.scale[plane]),
                         _mm256_set1_ps(row.offset[plane]));
}

void to_floats_avx2(const Columns& columns, const TapsView& taps, const NumberRow<float>& row) {
  resample_any_avx2(columns, taps, [&](int x, int plane, __m256i pixels) {
    const __m256 values = normalised_avx2(pixels, row, plane);
    float* const to = row.planes[plane] + x;
    if (x + kGroupAvx2 > taps.outputs) {
      float all[kGroupAvx2];
      _mm256_storeu_ps(all, values);
      std::memcpy(to, all, (taps.outputs - x) * sizeof(float));
    } else if (row.streamed) {
      _mm256_stream_ps(to, values);
    } else {
      _mm256_storeu_ps(to, values);
    }
  });
}

// As BFloat16's constructor rounds: to nearest even; NaN stays NaN.
__m128i bfloat16_avx2(__m256 values) {
  const __m256i raw = _mm256_castps_si256(values), upper = _mm256_srli_epi32(raw, 16);
  const __m256i half =
      _mm256_add_epi32(_mm256_and_si256(upper, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
  const __m256i nearest = _mm256_srli_epi32(_mm256_add_epi32(raw, half), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  const __m256i bits = _mm256_blendv_epi8(nearest, quiet, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

void to_bfloat16s_avx2(const Columns& columns, const TapsView& taps, const NumberRow<BFloat16>& row) {
  resample_any_avx2(columns, taps, [&](int x, int plane, __m256i pixels) {
    const __m128i bits = bfloat16_avx2(normalised_avx2(pixels, row, plane));
    auto* const to = reinterpret_cast<__m128i*>(row.planes[plane] + x);
    if (x + kGroupAvx2 > taps.outputs)
      std::memcpy(to, &bits, (taps.outputs - x) * sizeof(BFloat16));
    else if (row.streamed)
      _mm_stream_si128(to, bits);
    else
      _mm_storeu_si128(to, bits);
  });
}

}  // namespace

const RowKernels kAvx2RowKernels{combine_rows_avx2, to_bytes_avx2, to_floats_avx2, to_bfloat16s_avx2};

}  // namespace mox::image::internal
