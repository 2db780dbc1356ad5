// Compiled with AVX-512 switched on; called only where the processor has it.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/internal/winograd_stages.h"

namespace mox::winograd {
namespace {

// Plain matrices, as the products here want them: u [in][out], sums [out][in].
Strides filter_strides(const Problem& p) { return {p.filter_stride(), p.out_channels, kLanes}; }
Strides sum_strides(const Problem& p) { return {p.filter_stride(), p.in_channels, kLanes}; }
Part whole_chunk(int64_t tile, int64_t chunk, int64_t channels) {
  return {tile, 0, chunk, 0, channels / kLanes};
}

// What the tiles are in a product: rows of its left matrix, whose terms lie side by side, or its terms, with the rows side by
// side. What is known when this is compiled lets the loops address without multiplications.
enum class TilesAre { kRows, kTerms };

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums on the stack.
// c[Rows][16 * Vectors] (+)= sum over k of a(row, k) * b[k][...]; a's rows or terms lie `a_stride` floats apart. What lies in c
// is taken in where tiles are the terms.
template <TilesAre kTiles, int Rows, int Vectors>
inline void multiply_block(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c,
                           int64_t c_row, int64_t k, bool accumulate) {
  const int64_t a_row = kTiles == TilesAre::kRows ? a_stride : 1;
  const int64_t a_k = kTiles == TilesAre::kRows ? 1 : a_stride;
  const bool adds = kTiles == TilesAre::kTerms && accumulate;
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = adds ? _mm512_loadu_ps(c + r * c_row + v * kLanes) : _mm512_setzero_ps();
  for (int64_t i = 0; i < k; ++i, a += a_k, b += b_k) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = _mm512_loadu_ps(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = _mm512_fmadd_ps(scalar, line[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(c + r * c_row + v * kLanes, sum[r][v]);
}

template <TilesAre kTiles, int Rows, int Vectors>
void multiply_blocks(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c, int64_t c_row,
                     int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  const int64_t a_row = kTiles == TilesAre::kRows ? a_stride : 1;
  for (int64_t n = 0; n < columns; n += Vectors * kLanes)
    for (int64_t r = 0; r < rows; r += Rows)
      multiply_block<kTiles, Rows, Vectors>(a + r * a_row, a_stride, b + n, b_k, c + r * c_row + n, c_row, k,
                                            accumulate);
}

// `columns` is a multiple of 16; `rows` of 12 (tiles) or of 16 (channels).
template <TilesAre kTiles>
void multiply(const float* a, int64_t a_stride, const float* b, int64_t b_k, float* c, int64_t c_row,
              int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  // More rows of tiles than six would need more addresses than there are registers for them.
  constexpr int kWide = kTiles == TilesAre::kRows ? 6 : 4, kNarrow = kTiles == TilesAre::kRows ? 6 : 8;
  const auto blocks = columns % (4 * kLanes) == 0   ? multiply_blocks<kTiles, kWide, 4>
                      : columns % (3 * kLanes) == 0 ? multiply_blocks<kTiles, kWide, 3>
                      : columns % (2 * kLanes) == 0 ? multiply_blocks<kTiles, kNarrow, 2>
                                                    : multiply_blocks<kTiles, kNarrow, 1>;
  blocks(a, a_stride, b, b_k, c, c_row, rows, columns, k, accumulate);
}

template <int Tile, int R>
void correlate(const Problem& p, const float* x, const float* u, const float* bias, float* y, int64_t first,
               int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* products = scratch + p.points() * x_stride;
  for (int64_t tile = first; tile < last; tile += chunk) {
    transform_images<Writing::kCached, Tile, Tile + 1 - R>(p, x, whole_chunk(tile, chunk, p.in_channels),
                                                           {x_stride, p.in_channels, kLanes}, scratch);
    for (int point = 0; point < p.points(); ++point)
      multiply<TilesAre::kRows>(scratch + point * x_stride, p.in_channels, u + point * p.filter_stride(),
                                p.out_channels, products + point * y_stride, p.out_channels, chunk,
                                p.out_channels, p.in_channels, false);
    store_image<Tile, Tile + 1 - R>(p, products,
                                    {tile, 0, std::min(chunk, last - tile), 0, p.out_channels / kLanes},
                                    {y_stride, p.out_channels, kLanes}, bias, y);
  }
}

template <int Tile, int R>
void accumulate_filter(const Problem& p, const float* x, const float* dy, float* sums, int64_t first,
                       int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* gradients = scratch + p.points() * x_stride;
  if (first == last)
    std::memset(sums, 0, static_cast<size_t>(p.points() * p.filter_stride()) * sizeof(float));
  for (int64_t tile = first; tile < last; tile += chunk) {
    transform_images<Writing::kCached, Tile, Tile + 1 - R>(p, x, whole_chunk(tile, chunk, p.in_channels),
                                                           {x_stride, p.in_channels, kLanes}, scratch);
    transform_gradients<Writing::kCached, Tile, Tile + 1 - R>(p, dy, whole_chunk(tile, chunk, p.out_channels),
                                                              {y_stride, p.out_channels, kLanes}, gradients);
    for (int point = 0; point < p.points(); ++point)
      multiply<TilesAre::kTerms>(gradients + point * y_stride, p.out_channels, scratch + point * x_stride,
                                 p.in_channels, sums + point * p.filter_stride(), p.in_channels,
                                 p.out_channels, p.in_channels, chunk, tile > first);
  }
}

template <int Tile, int R>
constexpr Kernels kKernels{
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      transform_filter<Writing::kCached, Tile, R>(p, filters, filter_strides(p), u, first, last);
    },
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      transform_turned_filter<Writing::kCached, Tile, R>(p, filters, filter_strides(p), u, first, last);
    },
    correlate<Tile, R>, accumulate_filter<Tile, R>,
    [](const Problem& p, const float* sums, int64_t parts, float* filters, int64_t first, int64_t last) {
      finish_filter<Tile, R>(p, sums, parts, sum_strides(p), filters, first, last);
    }};

}  // namespace

const Kernels& kernels_avx512(int tile, int window) {
  if (tile == 8) return kKernels<8, 5>;
  return window == 3 ? kKernels<6, 3> : kKernels<6, 5>;
}

}  // namespace mox::winograd
