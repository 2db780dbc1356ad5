// Compiled with AVX-512 switched on; called only where the processor has it.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/internal/winograd_tiles.h"

namespace mox::winograd {
namespace {

using Vector = __m512;

Vector splat(float value) { return _mm512_set1_ps(value); }

// The powers of the finite points, and 1 / prod(a_i - a_j): row i of G is a_i^0, a_i^1, ... times the latter.
constexpr float kPoint[5] = {0, 1, -1, 2, -2};
constexpr float kScale[5] = {1.0f / 4, -1.0f / 6, -1.0f / 6, 1.0f / 24, 1.0f / 24};

constexpr float power(float base, int exponent) {
  float result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

// G: 6 x N, what turns N values into 6; A: N x 6, what turns 6 products into N results.
template <int N>
struct Matrices {
  float g[kTile][N], a[N][kTile];
  constexpr Matrices() : g(), a() {
    for (int n = 0; n < N; ++n) {
      for (int i = 0; i < kTile - 1; ++i) {
        g[i][n] = power(kPoint[i], n) * kScale[i];
        a[n][i] = power(kPoint[i], n);
      }
      g[kTile - 1][n] = a[n][kTile - 1] = n == N - 1 ? 1.0f : 0.0f;
    }
  }
};
template <int N>
inline constexpr Matrices<N> kMatrices{};

// sum over k of coefficient[k] * value[k * stride], zeros left out (the loop unrolls: coefficients are constants).
template <int Count>
inline Vector combine(const float (&coefficient)[Count], const Vector* value, int stride) {
  Vector sum = _mm512_setzero_ps();
#pragma GCC unroll 6
  for (int k = 0; k < Count; ++k)
    if (coefficient[k] != 0) sum = _mm512_fmadd_ps(splat(coefficient[k]), value[k * stride], sum);
  return sum;
}

// B^T applied to six values that lie `stride` apart, in place.
inline void transform_six(Vector* d, int stride) {
  const Vector four = splat(4), five = splat(5), two = splat(2);
  const Vector d0 = d[0], d1 = d[stride], d2 = d[2 * stride], d3 = d[3 * stride], d4 = d[4 * stride], d5 = d[5 * stride];
  const Vector even = _mm512_fnmadd_ps(four, d2, d4), odd = _mm512_fnmadd_ps(four, d1, d3);
  const Vector far = d4 - d2, near = two * (d3 - d1);
  d[0] = _mm512_fmadd_ps(four, d0, _mm512_fnmadd_ps(five, d2, d4));
  d[stride] = even + odd;
  d[2 * stride] = even - odd;
  d[3 * stride] = far + near;
  d[4 * stride] = far - near;
  d[5 * stride] = _mm512_fmadd_ps(four, d1, _mm512_fnmadd_ps(five, d3, d5));
}

// A rectangle of one channel block, zeros outside of the image.
template <int Side>
inline void load_pixels(const float* block, int64_t height, int64_t width, int64_t top, int64_t left, Vector (&d)[Side * Side]) {
  const bool inside = top >= 0 && left >= 0 && top + Side <= height && left + Side <= width;
  for (int i = 0; i < Side; ++i)
    for (int j = 0; j < Side; ++j) {
      const int64_t y = top + i, x = left + j;
      const bool there = inside || (y >= 0 && y < height && x >= 0 && x < width);
      d[i * Side + j] = there ? _mm512_loadu_ps(block + (y * width + x) * kLanes) : _mm512_setzero_ps();
    }
}

struct TilePosition {
  int64_t image, row, column;
};
TilePosition position_of(const Problem& p, int64_t tile) {
  const int64_t column = tile % p.tiles_x(), rest = tile / p.tiles_x();
  return {rest / p.tiles_y(), rest % p.tiles_y(), column};
}

// v[36][chunk][channels] = B^T d B of the tiles [first, first + count); rows of missing tiles are zero.
void transform_images(const Problem& p, const float* x, int64_t first, int64_t count, int64_t chunk, float* v) {
  const int64_t blocks = p.in_channels / kLanes, pixels = p.in_height * p.in_width;
  for (int64_t t = 0; t < chunk; ++t) {
    float* row = v + t * p.in_channels;
    if (t >= count) {
      for (int point = 0; point < kPoints; ++point)
        std::memset(row + point * chunk * p.in_channels, 0, static_cast<size_t>(p.in_channels) * sizeof(float));
      continue;
    }
    const TilePosition at = position_of(p, first + t);
    const int64_t top = at.row * p.outputs_a_side() - p.before_y, left = at.column * p.outputs_a_side() - p.before_x;
    for (int64_t b = 0; b < blocks; ++b) {
      Vector d[kPoints];
      load_pixels<kTile>(x + (at.image * blocks + b) * pixels * kLanes, p.in_height, p.in_width, top, left, d);
      for (int j = 0; j < kTile; ++j) transform_six(d + j, kTile);
      for (int i = 0; i < kTile; ++i) transform_six(d + i * kTile, 1);
      for (int point = 0; point < kPoints; ++point)
        _mm512_storeu_ps(row + point * chunk * p.in_channels + b * kLanes, d[point]);
    }
  }
}

// d[36][chunk][channels] = G dy G^T of the output tiles.
template <int M>
void transform_gradients(const Problem& p, const float* dy, int64_t first, int64_t count, int64_t chunk, float* out) {
  const int64_t blocks = p.out_channels / kLanes, pixels = p.out_height * p.out_width;
  for (int64_t t = 0; t < chunk; ++t) {
    float* row = out + t * p.out_channels;
    if (t >= count) {
      for (int point = 0; point < kPoints; ++point)
        std::memset(row + point * chunk * p.out_channels, 0, static_cast<size_t>(p.out_channels) * sizeof(float));
      continue;
    }
    const TilePosition at = position_of(p, first + t);
    for (int64_t b = 0; b < blocks; ++b) {
      Vector d[M * M], rows[kTile * M];
      load_pixels<M>(dy + (at.image * blocks + b) * pixels * kLanes, p.out_height, p.out_width, at.row * M, at.column * M, d);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i)
        for (int j = 0; j < M; ++j) rows[i * M + j] = combine(kMatrices<M>.g[i], d + j, M);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i)
#pragma GCC unroll 6
        for (int j = 0; j < kTile; ++j)
          _mm512_storeu_ps(row + (i * kTile + j) * chunk * p.out_channels + b * kLanes,
                           combine(kMatrices<M>.g[j], rows + i * M, 1));
    }
  }
}

// The N x N results of 36 products that lie `stride` floats apart.
template <int N>
inline void inverse(const float* products, int64_t stride, Vector (&result)[N * N]) {
  Vector m[kPoints], rows[N * kTile];
  for (int point = 0; point < kPoints; ++point) m[point] = _mm512_loadu_ps(products + point * stride);
#pragma GCC unroll 6
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < kTile; ++j) rows[i * kTile + j] = combine(kMatrices<N>.a[i], m + j, kTile);
#pragma GCC unroll 6
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < N; ++j) result[i * N + j] = combine(kMatrices<N>.a[j], rows + i * kTile, 1);
}

template <int M>
void store_outputs(const Problem& p, const float* products, int64_t chunk, int64_t first, int64_t count, const float* bias,
                   float* y) {
  const int64_t blocks = p.out_channels / kLanes, pixels = p.out_height * p.out_width;
  for (int64_t t = 0; t < count; ++t) {
    const TilePosition at = position_of(p, first + t);
    for (int64_t b = 0; b < blocks; ++b) {
      Vector result[M * M];
      inverse<M>(products + t * p.out_channels + b * kLanes, chunk * p.out_channels, result);
      const Vector offset = bias ? _mm512_loadu_ps(bias + b * kLanes) : _mm512_setzero_ps();
      float* block = y + (at.image * blocks + b) * pixels * kLanes;
      for (int i = 0; i < M; ++i)
        for (int j = 0; j < M; ++j) {
          const int64_t row = at.row * M + i, column = at.column * M + j;
          if (row < p.out_height && column < p.out_width)
            _mm512_storeu_ps(block + (row * p.out_width + column) * kLanes, result[i * M + j] + offset);
        }
    }
  }
}

// c[Rows][16 * Vectors] (+)= sum over k of a(row, k) * b[k][...].
template <int Rows, int Vectors>
inline void multiply_block(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c, int64_t c_row,
                           int64_t k, bool accumulate) {
  Vector sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = accumulate ? _mm512_loadu_ps(c + r * c_row + v * kLanes) : _mm512_setzero_ps();
  for (int64_t i = 0; i < k; ++i, a += a_k, b += b_k) {
    Vector line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v] = _mm512_loadu_ps(b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Vector scalar = splat(a[r * a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = _mm512_fmadd_ps(scalar, line[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(c + r * c_row + v * kLanes, sum[r][v]);
}

template <int Rows, int Vectors>
void multiply_blocks(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c, int64_t c_row,
                     int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  for (int64_t n = 0; n < columns; n += Vectors * kLanes)
    for (int64_t r = 0; r < rows; r += Rows)
      multiply_block<Rows, Vectors>(a + r * a_row, a_row, a_k, b + n, b_k, c + r * c_row + n, c_row, k, accumulate);
}

// `columns` is a multiple of 16; `rows` of 6 (kRowsAreTiles) or of 8.
template <bool kRowsAreTiles>
void multiply(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c, int64_t c_row, int64_t rows,
              int64_t columns, int64_t k, bool accumulate) {
  constexpr int kWide = kRowsAreTiles ? 6 : 4, kNarrow = kRowsAreTiles ? 6 : 8;
  if (columns % (4 * kLanes) == 0)
    multiply_blocks<kWide, 4>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
  else if (columns % (3 * kLanes) == 0)
    multiply_blocks<kWide, 3>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
  else if (columns % (2 * kLanes) == 0)
    multiply_blocks<kNarrow, 2>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
  else
    multiply_blocks<kNarrow, 1>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
}

// u[36][in][out] from taps that `tap(in, out, r, s)` finds.
template <int R, typename Tap>
void transform_taps(const Problem& p, float* u, int64_t first, int64_t last, const Tap& tap) {
  for (int64_t in = first; in < last; ++in)
    for (int64_t out = 0; out < p.out_channels; out += kLanes) {
      alignas(64) float lanes[R * R][kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane)
        for (int r = 0; r < R; ++r)
          for (int s = 0; s < R; ++s) lanes[r * R + s][lane] = tap(in, out + lane, r, s);
      Vector g[R * R], rows[kTile * R];
      for (int i = 0; i < R * R; ++i) g[i] = _mm512_load_ps(lanes[i]);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i)
        for (int s = 0; s < R; ++s) rows[i * R + s] = combine(kMatrices<R>.g[i], g + s, R);
#pragma GCC unroll 6
      for (int i = 0; i < kTile; ++i)
#pragma GCC unroll 6
        for (int j = 0; j < kTile; ++j)
          _mm512_storeu_ps(u + ((i * kTile + j) * p.in_channels + in) * p.out_channels + out,
                           combine(kMatrices<R>.g[j], rows + i * R, 1));
    }
}

template <int R>
void transform_filter_of(const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
  transform_taps<R>(p, u, first, last, [&](int64_t in, int64_t out, int r, int s) {
    return filters[((out * p.in_channels + in) * R + r) * R + s];
  });
}

template <int R>
void transform_turned_filter_of(const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
  transform_taps<R>(p, u, first, last, [&](int64_t in, int64_t out, int r, int s) {
    return filters[((in * p.out_channels + out) * R + (R - 1 - r)) * R + (R - 1 - s)];
  });
}

template <int R>
void finish_filter_of(const Problem& p, const float* sums, int64_t parts, float* filters, int64_t first, int64_t last) {
  const int64_t plane = p.out_channels * p.in_channels;
  for (int64_t out = first; out < last; ++out)
    for (int64_t in = 0; in < p.in_channels; in += kLanes) {
      alignas(64) float total[kPoints][kLanes];
      for (int point = 0; point < kPoints; ++point) {
        const float* at = sums + point * plane + out * p.in_channels + in;
        Vector sum = _mm512_loadu_ps(at);
        for (int64_t part = 1; part < parts; ++part) sum = sum + _mm512_loadu_ps(at + part * kPoints * plane);
        _mm512_store_ps(total[point], sum);
      }
      Vector result[R * R];
      inverse<R>(total[0], kLanes, result);
      alignas(64) float lanes[kLanes];
      for (int tap = 0; tap < R * R; ++tap) {
        _mm512_store_ps(lanes, result[tap]);
        for (int64_t lane = 0; lane < kLanes; ++lane)
          filters[((out * p.in_channels + in + lane) * R * R) + tap] = lanes[lane];
      }
    }
}

void transform_filter(const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
  (p.window == 3 ? transform_filter_of<3> : transform_filter_of<5>)(p, filters, u, first, last);
}
void transform_turned_filter(const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
  (p.window == 3 ? transform_turned_filter_of<3> : transform_turned_filter_of<5>)(p, filters, u, first, last);
}
void finish_filter(const Problem& p, const float* sums, int64_t parts, float* filters, int64_t first, int64_t last) {
  (p.window == 3 ? finish_filter_of<3> : finish_filter_of<5>)(p, sums, parts, filters, first, last);
}

void correlate(const Problem& p, const float* x, const float* u, const float* bias, float* y, int64_t first, int64_t last,
               int64_t chunk, float* scratch) {
  float* products = scratch + kPoints * chunk * p.in_channels;
  for (int64_t tile = first; tile < last; tile += chunk) {
    const int64_t count = std::min(chunk, last - tile);
    transform_images(p, x, tile, count, chunk, scratch);
    for (int point = 0; point < kPoints; ++point)
      multiply<true>(scratch + point * chunk * p.in_channels, p.in_channels, 1, u + point * p.in_channels * p.out_channels,
                     p.out_channels, products + point * chunk * p.out_channels, p.out_channels, chunk, p.out_channels,
                     p.in_channels, false);
    (p.window == 3 ? store_outputs<4> : store_outputs<2>)(p, products, chunk, tile, count, bias, y);
  }
}

void accumulate_filter(const Problem& p, const float* x, const float* dy, float* sums, int64_t first, int64_t last,
                       int64_t chunk, float* scratch) {
  float* gradients = scratch + kPoints * chunk * p.in_channels;
  for (int64_t tile = first; tile < last; tile += chunk) {
    const int64_t count = std::min(chunk, last - tile);
    transform_images(p, x, tile, count, chunk, scratch);
    (p.window == 3 ? transform_gradients<4> : transform_gradients<2>)(p, dy, tile, count, chunk, gradients);
    for (int point = 0; point < kPoints; ++point)
      multiply<false>(gradients + point * chunk * p.out_channels, 1, p.out_channels, scratch + point * chunk * p.in_channels,
                      p.in_channels, sums + point * p.out_channels * p.in_channels, p.in_channels, p.out_channels,
                      p.in_channels, chunk, true);
  }
}

}  // namespace

const Kernels kAvx512{transform_filter, transform_turned_filter, correlate, accumulate_filter, finish_filter};

}  // namespace mox::winograd
