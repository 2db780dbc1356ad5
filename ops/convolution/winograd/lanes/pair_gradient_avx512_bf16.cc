// Compiled with AVX-512 and its instructions for bfloat16 switched on; called only where the
// processor has them.
#include <immintrin.h>

#include <algorithm>

#include "ops/convolution/winograd/internal/bf16_gradient.h"
#include "ops/convolution/winograd/lanes/products.h"
#include "ops/convolution/winograd/lanes/transforms.h"

namespace mox::winograd {
namespace {

constexpr int kTile = 4, kWindow = 3, kOutputs = 2, kPoints = kTile * kTile, kTaps = kWindow * kWindow;
constexpr int kPacked = kPoints / 2;      // vectors of a tile's points, two points in each
constexpr int64_t kSegment = 16;          // tiles of a row that are transformed at a time
constexpr int64_t kRun = 128;             // pairs whose columns of a matrix stay in the L1 cache
constexpr int64_t kStreamed = 256 * 256;  // filters from which on the gradient goes around the caches

// What becomes of an image's square of pixels: first of each column, kValues from kSide pixels, which tiles
// that overlap share, then of a tile's kSide columns.
struct ImageSquare {
  static constexpr int kSide = kTile, kValues = kTile;
  static void transform_column(Vector* pixels, Vector* values) {
    transform_line<kTile>(pixels, 1);
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) values[i] = pixels[i];
  }
  static void transform_row(Vector* values, Vector* points) {
    transform_line<kTile>(values, 1);
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) points[i] = values[i];
  }
};
struct GradientSquare {
  static constexpr int kSide = kOutputs, kValues = kTile;
  static void transform_column(const Vector* pixels, Vector* values) {
    expand_line<kTile, kOutputs>(pixels, 1, values, 1);
  }
  static void transform_row(const Vector* values, Vector* points) {
    expand_line<kTile, kOutputs>(values, 1, points, 1);
  }
};

// The points of a tile from its columns, rounded.
template <typename Square>
inline void pack_tile(const Vector* columns, __m512i* packed) {
#pragma GCC unroll 4
  for (int i = 0; i < kTile; ++i) {
    Vector row[Square::kSide], points[kTile];
#pragma GCC unroll 4
    for (int j = 0; j < Square::kSide; ++j) row[j] = columns[j * Square::kValues + i];
    Square::transform_row(row, points);
    packed[2 * i] = (__m512i)_mm512_cvtne2ps_pbh(points[1], points[0]);
    packed[2 * i + 1] = (__m512i)_mm512_cvtne2ps_pbh(points[3], points[2]);
  }
}

// Two tiles as a pair, point by point.
inline void write_pair(const __m512i* first, const __m512i* second, float* to, int64_t stride) {
  const __m512i lower = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                         38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i upper = _mm512_add_epi16(lower, _mm512_set1_epi16(kLanes));
#pragma GCC unroll 8
  for (int i = 0; i < kPacked; ++i, to += 2 * stride) {
    _mm512_store_si512(to, _mm512_permutex2var_epi16(first[i], lower, second[i]));
    _mm512_store_si512(to + stride, _mm512_permutex2var_epi16(first[i], upper, second[i]));
  }
}

struct Image {
  const BFloat16* pixels;
  int64_t channels, height, width;
  int64_t before_y, before_x;  // rows and columns of padding before it
};

// The columns of `count` tiles of a row, transformed: their pixels, or zeros outside of the image.
template <typename Square>
void transform_columns(const Image& image, const BFloat16* block, int64_t top, int64_t left, int64_t count,
                       Vector* values) {
  constexpr int kSide = Square::kSide;
  const BFloat16* line[kSide];
  __mmask16 mask[kSide];
#pragma GCC unroll 4
  for (int i = 0; i < kSide; ++i) {
    const bool is_inside = top + i >= 0 && top + i < image.height;
    mask[i] = is_inside ? 0xffff : 0;
    line[i] = block + ((is_inside ? top + i : 0) * image.width + left) * kLanes;
  }
  const int64_t columns = kOutputs * count + kSide - kOutputs;
  const int64_t first = std::clamp<int64_t>(-left, 0, columns);
  const int64_t last = std::clamp(image.width - left, first, columns);
  std::fill(values, values + first * Square::kValues, _mm512_setzero_ps());
  // The next row of tiles needs two more rows of pixels. Neighbours lie in too many places for the processor
  // to follow by itself; where there is no such row, what lies there is of no use and no harm.
  const BFloat16* next = block + ((top + kSide) * image.width + left) * kLanes;
  for (int64_t j = first; j < last; ++j) {
    Vector pixels[kSide];
#pragma GCC unroll 4
    for (int i = 0; i < kSide; ++i) pixels[i] = load_where(mask[i], line[i] + j * kLanes);
    Square::transform_column(pixels, values + j * Square::kValues);
    if (j % 2 == 0) {  // a cache line holds two pixels
      _mm_prefetch(next + j * kLanes, _MM_HINT_T0);
      _mm_prefetch(next + (image.width + j) * kLanes, _MM_HINT_T0);
    }
  }
  std::fill(values + last * Square::kValues, values + columns * Square::kValues, _mm512_setzero_ps());
}

template <typename Square>
void transform(const Problem& p, const Image& image, const TileChunk& chunk, float* out, int64_t first,
               int64_t last) {
  constexpr int64_t kStep = kOutputs * Square::kValues;
  const int64_t pairs = chunk.rows / 2, stride = point_stride(pairs * image.channels);
  const int64_t columns = p.tiles_x(), rows = p.tiles_y(), blocks = image.channels / kLanes;
  const int64_t end = std::min(p.tiles(), chunk.first_tile + 2 * last);
  for (int64_t b = 0; b < blocks; ++b) {
    float* to = out + (b * pairs + first) * kLanes;
    float* stop = out + (b * pairs + last) * kLanes;
    __m512i waiting[kPacked];  // the first tile of a pair whose second is in the next segment
    bool waits = false;
    for (int64_t tile = chunk.first_tile + 2 * first; tile < end;) {
      const int64_t column = tile % columns, row = tile / columns % rows, n = tile / columns / rows;
      const int64_t count = std::min({columns - column, end - tile, kSegment});
      Vector values[(kOutputs * kSegment + Square::kSide - kOutputs) * Square::kValues];
      transform_columns<Square>(image, image.pixels + (n * blocks + b) * image.height * image.width * kLanes,
                                row * kOutputs - image.before_y, column * kOutputs - image.before_x, count,
                                values);
      int64_t t = 0;
      if (waits) {
        __m512i second[kPacked];
        pack_tile<Square>(values, second);
        write_pair(waiting, second, to, stride);
        to += kLanes;
        ++t;
      }
      for (; t + 2 <= count; t += 2, to += kLanes) {
        __m512i one[kPacked], two[kPacked];
        pack_tile<Square>(values + t * kStep, one);
        pack_tile<Square>(values + (t + 1) * kStep, two);
        write_pair(one, two, to, stride);
      }
      waits = t < count;
      if (waits) pack_tile<Square>(values + t * kStep, waiting);
      tile += count;
    }
    __m512i zeros[kPacked];
    std::fill_n(zeros, kPacked, _mm512_setzero_si512());
    if (waits) {
      write_pair(waiting, zeros, to, stride);
      to += kLanes;
    }
    for (; to < stop; to += kLanes) write_pair(zeros, zeros, to, stride);
  }
}

// sums[Rows][16 * Vectors] (+)= sum over k pairs of d[pair][row] * v[vector][pair][16].
template <int Rows, int Vectors>
inline void multiply_strip(const float* d, const float* v, int64_t v_stride, float* sums, int64_t k,
                           bool adds) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int c = 0; c < Vectors; ++c)
      sum[r][c] = adds ? _mm512_load_ps(sums + r * kBlockColumns + c * kLanes) : _mm512_setzero_ps();
  for (int64_t i = 0; i < k; ++i, d += kLanes, v += kLanes) {
    Vector line[Vectors];
#pragma GCC unroll 2
    for (int c = 0; c < Vectors; ++c) line[c] = _mm512_load_ps(v + c * v_stride);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(d[r]);
#pragma GCC unroll 2
      for (int c = 0; c < Vectors; ++c) sum[r][c] = Pairs::add_product(sum[r][c], scalar, line[c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int c = 0; c < Vectors; ++c) _mm512_store_ps(sums + r * kBlockColumns + c * kLanes, sum[r][c]);
}

// The rows of a block, strip by strip: the columns stay in the L1 cache meanwhile.
template <int Vectors>
inline void multiply_rows(const float* d, const float* v, int64_t stride, int64_t rows, float* sums,
                          int64_t k, bool adds) {
  constexpr int kRows = 8;
  for (int64_t r = 0; r < rows; r += kRows)
    multiply_strip<kRows, Vectors>(d + r / kLanes * stride + r % kLanes, v, stride, sums + r * kBlockColumns,
                                   k, adds);
}

void accumulate(const Problem& p, const TileChunk& chunk, const FilterBlock& block, const float* d,
                const float* v, float* sums, bool adds) {
  const int64_t pairs = chunk.rows / 2, stride = pairs * kLanes;
  d += block.first_row * pairs;
  v += block.first_column * pairs;
  for (int point = 0; point < kPoints; ++point) {
    for (int64_t first = 0; first < pairs; first += kRun) {
      const int64_t k = std::min(kRun, pairs - first);
      const bool adds_to_run = adds || first > 0;
      const float* left = d + first * kLanes;
      const float* right = v + first * kLanes;
      int64_t c = 0;
      for (; c + 2 * kLanes <= block.columns; c += 2 * kLanes)
        multiply_rows<2>(left, right + c * pairs, stride, block.rows, sums + c, k, adds_to_run);
      if (c < block.columns)
        multiply_rows<1>(left, right + c * pairs, stride, block.rows, sums + c, k, adds_to_run);
    }
    d += point_stride(pairs * p.out_channels);
    v += point_stride(pairs * p.in_channels);
    sums += block.point_stride();
  }
}

// The taps of 16 filters side by side.
inline void write_taps(const Vector* result, float* to) {
  alignas(64) float taps[kTaps][kLanes];
#pragma GCC unroll 9
  for (int t = 0; t < kTaps; ++t) _mm512_store_ps(taps[t], result[t]);
  for (int64_t lane = 0; lane < kLanes; lane += 4, to += 4 * kTaps) {
#pragma GCC unroll 2
    for (int t = 0; t < 8; t += 4) {
      __m128 a = _mm_load_ps(taps[t] + lane), b = _mm_load_ps(taps[t + 1] + lane);
      __m128 c = _mm_load_ps(taps[t + 2] + lane), d = _mm_load_ps(taps[t + 3] + lane);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      _mm_storeu_ps(to + t, a);
      _mm_storeu_ps(to + kTaps + t, b);
      _mm_storeu_ps(to + 2 * kTaps + t, c);
      _mm_storeu_ps(to + 3 * kTaps + t, d);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) to[i * kTaps + 8] = taps[8][lane + i];
  }
}

template <bool kAroundCaches>
void finish_block(const Problem& p, const FilterBlock& block, const float* sums, int64_t parts,
                  int64_t part_floats, float* filters) {
  for (int64_t r = 0; r < block.rows; ++r)
    for (int64_t c = 0; c < block.columns; c += kLanes) {
      alignas(64) float total[kPoints][kLanes];
      for (int point = 0; point < kPoints; ++point) {
        const float* at = sums + point * block.point_stride() + r * kBlockColumns + c;
        Vector sum = _mm512_load_ps(at);
        for (int64_t part = 1; part < parts; ++part) sum = sum + _mm512_load_ps(at + part * part_floats);
        _mm512_store_ps(total[point], sum);
      }
      Vector result[kTaps];
      contract<kTile, kWindow>(total[0], kLanes, result);
      float* to = filters + ((block.first_row + r) * p.in_channels + block.first_column + c) * kTaps;
      if constexpr (kAroundCaches) {
        alignas(64) float lines[kTaps][kLanes];
        write_taps(result, lines[0]);
        for (int i = 0; i < kTaps; ++i) _mm512_stream_ps(to + i * kLanes, _mm512_load_ps(lines[i]));
      } else {
        write_taps(result, to);
      }
    }
  if constexpr (kAroundCaches) _mm_sfence();
}

constexpr PairGradientKernels kKernels{
    [](const Problem& p, const TileChunk& chunk, const BFloat16* x, float* v, int64_t first, int64_t last) {
      transform<ImageSquare>(p, {x, p.in_channels, p.in_height, p.in_width, p.before_y, p.before_x}, chunk, v,
                             first, last);
    },
    [](const Problem& p, const TileChunk& chunk, const BFloat16* dy, float* d, int64_t first, int64_t last) {
      transform<GradientSquare>(p, {dy, p.out_channels, p.out_height, p.out_width, 0, 0}, chunk, d, first,
                                last);
    },
    accumulate,
    [](const Problem& p, const FilterBlock& block, const float* sums, int64_t parts, int64_t part_floats,
       float* filters) {
      const bool is_aligned = reinterpret_cast<uintptr_t>(filters) % sizeof(Vector) == 0;
      const auto finish = is_aligned && p.in_channels * p.out_channels >= kStreamed ? finish_block<true>
                                                                                    : finish_block<false>;
      finish(p, block, sums, parts, part_floats, filters);
    }};

}  // namespace

const PairGradientKernels& pair_gradient_kernels_avx512_bf16() { return kKernels; }

}  // namespace mox::winograd
