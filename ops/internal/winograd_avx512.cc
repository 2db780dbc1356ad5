// Compiled with AVX-512 switched on; called only where the processor has it.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/internal/winograd_tiles.h"
#include "ops/internal/winograd_transforms.h"

namespace mox::winograd {
namespace {

struct TilePosition {
  int64_t image, row, column;
};
TilePosition position_of(const Problem& p, int64_t tile) {
  const int64_t column = tile % p.tiles_x(), rest = tile / p.tiles_x();
  return {rest / p.tiles_y(), rest % p.tiles_y(), column};
}

// out[point][chunk][channels] for the tiles [first, first + count); rows of missing tiles are zero. load(position, block, d)
// reads the pixels of a tile, and spread(d, store) hands the values of its points to `store`.
template <int Values, typename Load, typename Spread>
void transform_tiles(const Problem& p, int64_t channels, int64_t first, int64_t count, int64_t chunk,
                     float* out, const Load& load, const Spread& spread) {
  const int64_t stride = point_stride(chunk * channels);
  for (int64_t t = 0; t < chunk; ++t) {
    float* row = out + t * channels;
    if (t >= count) {
      for (int point = 0; point < p.points(); ++point)
        std::memset(row + point * stride, 0, static_cast<size_t>(channels) * sizeof(float));
      continue;
    }
    const TilePosition at = position_of(p, first + t);
    for (int64_t b = 0; b < channels / kLanes; ++b) {
      Vector d[Values];
      load(at, b, d);
      spread(d, [&](int point, Vector value) { _mm512_storeu_ps(row + point * stride + b * kLanes, value); });
    }
  }
}

// B^T d B of the image's tiles.
template <int Tile>
void transform_images(const Problem& p, const float* x, int64_t first, int64_t count, int64_t chunk,
                      float* v) {
  const int64_t blocks = p.in_channels / kLanes, pixels = p.in_height * p.in_width,
                outputs = p.outputs_a_side();
  transform_tiles<Tile * Tile>(
      p, p.in_channels, first, count, chunk, v,
      [&](const TilePosition& at, int64_t b, Vector* d) {
        load_pixels<Tile>(x + (at.image * blocks + b) * pixels * kLanes, p.in_height, p.in_width,
                          at.row * outputs - p.before_y, at.column * outputs - p.before_x, d);
      },
      [](Vector* d, const auto& store) {
        for (int j = 0; j < Tile; ++j) transform_line<Tile>(d + j, Tile);
        for (int i = 0; i < Tile; ++i) {
          transform_line<Tile>(d + i * Tile, 1);
          for (int j = 0; j < Tile; ++j) store(i * Tile + j, d[i * Tile + j]);
        }
      });
}

// G dy G^T of the output's tiles.
template <int Tile, int M>
void transform_gradients(const Problem& p, const float* dy, int64_t first, int64_t count, int64_t chunk,
                         float* out) {
  const int64_t blocks = p.out_channels / kLanes, pixels = p.out_height * p.out_width;
  transform_tiles<M * M>(
      p, p.out_channels, first, count, chunk, out,
      [&](const TilePosition& at, int64_t b, Vector* d) {
        load_pixels<M>(dy + (at.image * blocks + b) * pixels * kLanes, p.out_height, p.out_width, at.row * M,
                       at.column * M, d);
      },
      [](const Vector* d, const auto& store) { expand<Tile, M>(d, store); });
}

template <int Tile, int M>
void store_outputs(const Problem& p, const float* products, int64_t chunk, int64_t first, int64_t count,
                   const float* bias, float* y) {
  const int64_t blocks = p.out_channels / kLanes, pixels = p.out_height * p.out_width;
  for (int64_t t = 0; t < count; ++t) {
    const TilePosition at = position_of(p, first + t);
    const int64_t rows = std::min<int64_t>(M, p.out_height - at.row * M);
    const int64_t columns = std::min<int64_t>(M, p.out_width - at.column * M);
    for (int64_t b = 0; b < blocks; ++b) {
      Vector result[M * M];
      contract<Tile, M>(products + t * p.out_channels + b * kLanes, point_stride(chunk * p.out_channels),
                        result);
      const Vector offset = bias ? _mm512_loadu_ps(bias + b * kLanes) : _mm512_setzero_ps();
      float* corner =
          y + ((at.image * blocks + b) * pixels + at.row * M * p.out_width + at.column * M) * kLanes;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          _mm512_storeu_ps(corner + (i * p.out_width + j) * kLanes, result[i * M + j] + offset);
    }
  }
}

// c[Rows][16 * Vectors] (+)= sum over k of a(row, k) * b[k][...].
template <int Rows, int Vectors>
inline void multiply_block(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c,
                           int64_t c_row, int64_t k, bool accumulate) {
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
void multiply_blocks(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c,
                     int64_t c_row, int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  for (int64_t n = 0; n < columns; n += Vectors * kLanes)
    for (int64_t r = 0; r < rows; r += Rows)
      multiply_block<Rows, Vectors>(a + r * a_row, a_row, a_k, b + n, b_k, c + r * c_row + n, c_row, k,
                                    accumulate);
}

// `columns` is a multiple of 16; `rows` of 12 (kRowsAreTiles) or of 8.
template <bool kRowsAreTiles>
void multiply(const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, float* c,
              int64_t c_row, int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  constexpr int kWide = kRowsAreTiles ? 6 : 4, kNarrow = kRowsAreTiles ? 12 : 8;
  if (columns % (4 * kLanes) == 0)
    multiply_blocks<kWide, 4>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
  else if (columns % (3 * kLanes) == 0)
    multiply_blocks<kWide, 3>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
  else if (columns % (2 * kLanes) == 0)
    multiply_blocks<kNarrow, 2>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
  else
    multiply_blocks<kNarrow, 1>(a, a_row, a_k, b, b_k, c, c_row, rows, columns, k, accumulate);
}

// u[point][in][out] from taps that `tap(in, out, r, s)` finds.
template <int Tile, int R, typename Tap>
void transform_taps(const Problem& p, float* u, int64_t first, int64_t last, const Tap& tap) {
  for (int64_t in = first; in < last; ++in)
    for (int64_t out = 0; out < p.out_channels; out += kLanes) {
      alignas(64) float lanes[R * R][kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane)
        for (int r = 0; r < R; ++r)
          for (int s = 0; s < R; ++s) lanes[r * R + s][lane] = tap(in, out + lane, r, s);
      Vector g[R * R];
      for (int i = 0; i < R * R; ++i) g[i] = _mm512_load_ps(lanes[i]);
      expand<Tile, R>(g, [&](int point, Vector value) {
        _mm512_storeu_ps(u + point * p.filter_stride() + in * p.out_channels + out, value);
      });
    }
}

template <int Tile, int R>
void transform_filter(const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
  transform_taps<Tile, R>(p, u, first, last, [&](int64_t in, int64_t out, int r, int s) {
    return filters[((out * p.in_channels + in) * R + r) * R + s];
  });
}

template <int Tile, int R>
void transform_turned_filter(const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
  transform_taps<Tile, R>(p, u, first, last, [&](int64_t in, int64_t out, int r, int s) {
    return filters[((in * p.out_channels + out) * R + (R - 1 - r)) * R + (R - 1 - s)];
  });
}

template <int Tile, int R>
void finish_filter(const Problem& p, const float* sums, int64_t parts, float* filters, int64_t first,
                   int64_t last) {
  const int64_t stride = p.filter_stride(), part_size = Tile * Tile * stride;
  for (int64_t out = first; out < last; ++out)
    for (int64_t in = 0; in < p.in_channels; in += kLanes) {
      alignas(64) float total[Tile * Tile][kLanes];
      for (int point = 0; point < Tile * Tile; ++point) {
        const float* at = sums + point * stride + out * p.in_channels + in;
        Vector sum = _mm512_loadu_ps(at);
        for (int64_t part = 1; part < parts; ++part) sum = sum + _mm512_loadu_ps(at + part * part_size);
        _mm512_store_ps(total[point], sum);
      }
      Vector result[R * R];
      contract<Tile, R>(total[0], kLanes, result);
      alignas(64) float lanes[kLanes];
      for (int tap = 0; tap < R * R; ++tap) {
        _mm512_store_ps(lanes, result[tap]);
        for (int64_t lane = 0; lane < kLanes; ++lane)
          filters[((out * p.in_channels + in + lane) * R * R) + tap] = lanes[lane];
      }
    }
}

template <int Tile, int R>
void correlate(const Problem& p, const float* x, const float* u, const float* bias, float* y, int64_t first,
               int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* products = scratch + p.points() * x_stride;
  for (int64_t tile = first; tile < last; tile += chunk) {
    const int64_t count = std::min(chunk, last - tile);
    transform_images<Tile>(p, x, tile, count, chunk, scratch);
    for (int point = 0; point < p.points(); ++point)
      multiply<true>(scratch + point * x_stride, p.in_channels, 1, u + point * p.filter_stride(),
                     p.out_channels, products + point * y_stride, p.out_channels, chunk, p.out_channels,
                     p.in_channels, false);
    store_outputs<Tile, Tile + 1 - R>(p, products, chunk, tile, count, bias, y);
  }
}

template <int Tile, int R>
void accumulate_filter(const Problem& p, const float* x, const float* dy, float* sums, int64_t first,
                       int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* gradients = scratch + p.points() * x_stride;
  if (first == last) std::memset(sums, 0, static_cast<size_t>(p.points() * p.filter_stride()) * sizeof(float));
  for (int64_t tile = first; tile < last; tile += chunk) {
    const int64_t count = std::min(chunk, last - tile);
    transform_images<Tile>(p, x, tile, count, chunk, scratch);
    transform_gradients<Tile, Tile + 1 - R>(p, dy, tile, count, chunk, gradients);
    for (int point = 0; point < p.points(); ++point)
      multiply<false>(gradients + point * y_stride, 1, p.out_channels, scratch + point * x_stride,
                      p.in_channels, sums + point * p.filter_stride(), p.in_channels, p.out_channels,
                      p.in_channels, chunk, tile > first);
  }
}

template <int Tile, int R>
constexpr Kernels kKernels{transform_filter<Tile, R>, transform_turned_filter<Tile, R>, correlate<Tile, R>,
                           accumulate_filter<Tile, R>, finish_filter<Tile, R>};

}  // namespace

const Kernels& kernels_avx512(int tile, int window) {
  if (tile == 8) return kKernels<8, 5>;
  return window == 3 ? kKernels<6, 3> : kKernels<6, 5>;
}

}  // namespace mox::winograd
