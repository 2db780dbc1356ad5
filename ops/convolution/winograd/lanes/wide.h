// Kernels for filters that are larger than a core's cache (ops/processor/lanes.h).
#pragma once

#include <algorithm>

#include "ops/convolution/winograd/lanes/stages.h"

namespace mox::winograd {
inline namespace MOX_LANES {
namespace {

constexpr int kTile = 6, kWindow = 3, kOutputs = 4;
constexpr int64_t kBlock = kLanes * kLanes;  // kLanes rows of a block of kLanes columns
// such blocks of the right matrix at a time: with as many columns of them as are sums, half an L1 cache
constexpr int64_t kDepth = kRegisters >= 32 ? 4 : 24;
// Columns of them at a time: with four or six rows, 16 or 24 sums in 32 registers, eight or twelve in 16.
constexpr int kWidestPanel = kRegisters >= 32 ? 4 : 2;

// All matrices are blocked: [columns / kLanes][rows][kLanes]. Every stream of the products is contiguous so.
Strides blocked(int64_t rows, int64_t columns) {
  return {point_stride(rows * columns), kLanes, rows * kLanes};
}

// Loops over sums are unrolled by pragma where they fill and store them: left to the end, GCC keeps the sums
// on the stack. c[Rows][Vectors blocks] (+)= a x b over `blocks` times kLanes terms, which are summed by
// themselves first: the error of a sum grows with the root of how many there are in a row. An element of a:
// row r, term k of block i is at a[i * a_block + k * a_term + r * a_row].
template <int Rows, int Vectors>
inline void multiply_block(const float* a, int64_t a_row, int64_t a_term, int64_t a_block, const float* b,
                           int64_t b_column, float* c, int64_t c_column, int64_t blocks, bool accumulate) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[r][v] = zero();
  for (int64_t i = 0; i < blocks; ++i, a += a_block) {
    const float* at = a;
    for (int64_t k = 0; k < kLanes; ++k, at += a_term, b += kLanes) {
      Vector line[Vectors];
      for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * b_column);
      for (int r = 0; r < Rows; ++r) {
        const Vector scalar = splat(at[r * a_row]);
        for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(scalar, line[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + v * c_column + r * kLanes;
      store(to, accumulate ? load(to) + sum[r][v] : sum[r][v]);
    }
}

// The left matrix of a product as multiply_block reads it.
struct Left {
  const float* values;
  int64_t term, block;  // strides of its terms and of their blocks of kLanes
  // rows that lie kLanes floats or 1 apart, and the stride from one group of them to the next
  int64_t rows_a_block, row_block;
  int64_t row;
  const float* at(int64_t r) const { return values + r / rows_a_block * row_block + r % rows_a_block * row; }
};

template <int Rows, int Vectors>
void multiply_panel(const Left& a, const float* b, int64_t b_column, float* c, int64_t c_column, int64_t rows,
                    int64_t blocks, bool accumulate) {
  for (int64_t i = 0; i < blocks; i += kDepth)
    for (int64_t r = 0; r < rows; r += Rows)
      multiply_block<Rows, Vectors>(a.at(r) + i * a.block, a.row, a.term, a.block, b + i * kBlock, b_column,
                                    c + r * kLanes, c_column, std::min(kDepth, blocks - i),
                                    accumulate || i > 0);
}

// c (+)= a x b: `rows` is a multiple of Rows, `columns` and the number of terms of kLanes.
template <int Rows>
void multiply(const Left& a, const float* b, int64_t terms, float* c, int64_t rows, int64_t columns,
              bool accumulate) {
  const int64_t b_column = terms * kLanes, c_column = rows * kLanes, blocks = terms / kLanes;
  for (int64_t n = 0; n < columns / kLanes;) {
    const int64_t vectors = std::min<int64_t>(kWidestPanel, columns / kLanes - n);
    const auto panel = vectors == 4   ? multiply_panel<Rows, kWidestPanel>
                       : vectors == 3 ? multiply_panel<Rows, std::min(kWidestPanel, 3)>
                       : vectors == 2 ? multiply_panel<Rows, 2>
                                      : multiply_panel<Rows, 1>;
    panel(a, b + n * b_column, b_column, c + n * c_column, c_column, rows, blocks, accumulate);
    n += vectors;
  }
}

// One block of channels after the other, so that what is written to each point is contiguous.
template <typename Stage>
void block_by_block(const TileChunk& chunk, int64_t first, int64_t last, int64_t channels,
                    const Stage& stage) {
  for (int64_t b = 0; b < channels / kLanes; ++b) stage(Part{chunk.first_tile, first, last, b, b + 1});
}

void transform_image(const Problem& p, const TileChunk& chunk, const float* x, float* v, int64_t first,
                     int64_t last) {
  block_by_block(chunk, first, last, p.in_channels, [&](const Part& part) {
    transform_tiles<kScattered>(p, ImageTiles<kTile, kOutputs, float>{p, x}, part,
                                blocked(chunk.rows, p.in_channels), v);
  });
}

void transform_gradient(const Problem& p, const TileChunk& chunk, const float* dy, float* d, int64_t first,
                        int64_t last) {
  block_by_block(chunk, first, last, p.out_channels, [&](const Part& part) {
    transform_tiles<kScattered>(p, GradientTiles<kTile, kOutputs, float>{p, dy}, part,
                                blocked(chunk.rows, p.out_channels), d);
  });
}

// A part of the out-channels stays in the caches until it is used.
bool streams_filter(const Problem& p) { return p.all_out_channels == 0; }

constexpr WideKernels kKernels{
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      const auto transform = streams_filter(p)
                                 ? transform_filter<kScattered, Expansion<kTile, kWindow>>
                                 : transform_filter<Writing::kCached, Expansion<kTile, kWindow>>;
      transform(p, filters, blocked(p.in_channels, p.out_channels), u, first, last);
    },
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      const auto transform = streams_filter(p)
                                 ? transform_turned_filter<kScattered, Expansion<kTile, kWindow>>
                                 : transform_turned_filter<Writing::kCached, Expansion<kTile, kWindow>>;
      transform(p, filters, blocked(p.in_channels, p.out_channels), u, first, last);
    },
    transform_image,
    transform_gradient,
    [](const Problem& p, const TileChunk& chunk, const float* v, const float* u, float* products,
       int64_t first, int64_t last) {
      for (int64_t point = first; point < last; ++point)
        multiply<6>({v + point * point_stride(chunk.rows * p.in_channels), 1, chunk.rows * kLanes, chunk.rows,
                     0, kLanes},
                    u + point * p.filter_stride(), p.in_channels,
                    products + point * point_stride(chunk.rows * p.out_channels), chunk.rows, p.out_channels,
                    false);
    },
    [](const Problem& p, const TileChunk& chunk, const float* products, const float* bias, float* y,
       int64_t first, int64_t last) {
      block_by_block(chunk, first, last, p.out_channels, [&](const Part& part) {
        const Strides strides = blocked(chunk.rows, p.out_channels);
        store_image<Contraction<kTile, kOutputs>>(p, products + part.first_block * strides.block, part,
                                                  strides, bias, y, is_streamed(p.output_floats(), y));
      });
      finish<Writing::kStreamed>();
    },
    [](const Problem& p, const TileChunk& chunk, const float* d, const float* v, float* sums, int64_t first,
       int64_t last) {
      for (int64_t point = first; point < last; ++point)
        multiply<4>({d + point * point_stride(chunk.rows * p.out_channels), kLanes, kBlock, kLanes,
                     chunk.rows * kLanes, 1},
                    v + point * point_stride(chunk.rows * p.in_channels), chunk.rows,
                    sums + point * p.filter_stride(), p.out_channels, p.in_channels, chunk.first_tile > 0);
    },
    [](const Problem& p, const float* sums, float* filters, int64_t first, int64_t last) {
      finish_filter<kTile, kWindow>(p, sums, 1, blocked(p.out_channels, p.in_channels), filters, first, last);
    }};

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::winograd
