// The stages of Winograd's convolutions beside the matrix products (ops/processor/lanes.h). Images and
// filters are those of tiles.h; the matrices of the points lie as `Strides` says.
#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/convolution/winograd/internal/tiles.h"
#include "ops/convolution/winograd/lanes/epilogues.h"
#include "ops/convolution/winograd/lanes/pixels_ahead.h"
#include "ops/convolution/winograd/lanes/taps.h"
#include "ops/convolution/winograd/lanes/transforms.h"

namespace mox::winograd {
inline namespace MOX_LANES {

// Floats from one point's matrix to the next, from row to row, and from one block of kLanes
// columns to the next.
struct Strides {
  int64_t point, row, block;
};

// kStreamed: around the caches, for what fills more than them before it is read: a third of the traffic less,
// and nothing else is driven out. Written once finish<kWriting>() has run; then other threads may be told.
enum class Writing { kCached, kStreamed };
template <Writing kWriting>
inline void write(float* to, Vector value) {
  if constexpr (kWriting == Writing::kStreamed)
    stream(to, value);
  else
    store(to, value);
}

#ifdef __AVX512BF16__
template <Writing kWriting>
inline void write(BFloat16* to, Vector value) {
  static_assert(kWriting == Writing::kCached, "half a cache line cannot go around the caches");
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(value));
}
#endif

// For what is written one vector here and one there: half a line would go to memory by itself.
inline constexpr Writing kScattered = kFillsLine ? Writing::kStreamed : Writing::kCached;

template <Writing kWriting>
inline void finish() {
  if constexpr (kWriting == Writing::kStreamed) finish_streams();
}

// The place of a tile, moved from one to the next without divisions.
struct TilePosition {
  int64_t columns, rows;  // of tiles, in an image
  int64_t column, row, image;

  TilePosition(const Problem& p, int64_t tile)
      : columns(p.tiles_x()),
        rows(p.tiles_y()),
        column(tile % columns),
        row(tile / columns % rows),
        image(tile / columns / rows) {}
  void advance() {
    if (++column < columns) return;
    column = 0;
    if (++row < rows) return;
    row = 0;
    ++image;
  }
};

// What a stage works on: rows [first, last) of a chunk, of these blocks of channels. Row 0 of the chunk is
// tile `origin`; rows past the last tile of the problem are zero.
struct Part {
  int64_t origin, first, last;
  int64_t first_block, last_block;
};

// How tiles are transformed. load(position, block, d) reads the pixels of a tile and transforms its columns
// as it does: a tile has more values than there are registers. spread(d, store) transforms the rows and hands
// the values of the points to `store`, in their order. ahead(first, last) is what these tiles read, to be
// fetched meanwhile.

// Where the pixels of a tile are: rows outside of the image are rows of zeros, and columns outside
// of it are masked.
template <int Side>
struct TilePixels {
  const float* rows[Side];
  Mask columns[Side];

  TilePixels(const float* block, int64_t height, int64_t width, int64_t top, int64_t left) {
    alignas(64) static constexpr float kZeros[Side * kLanes] = {};
#pragma GCC unroll 8
    for (int i = 0; i < Side; ++i) {
      const bool is_there = static_cast<uint64_t>(top + i) < static_cast<uint64_t>(height);
      rows[i] = is_there ? block + ((top + i) * width + left) * kLanes : kZeros;
      columns[i] = static_cast<uint64_t>(left + i) < static_cast<uint64_t>(width) ? kEverywhere : kNowhere;
    }
  }
};

// Three rows of points of a tile of 6 x 6 pixels, of five rows of them, in registers from the first to the
// last: the whole tile would not fit into them. Inlined, GCC makes it slower.
template <Writing kWriting, void (*Half)(const Vector*, Vector*)>
[[gnu::noinline]] void transform_half(const float* const* rows, const Mask* columns, float* to,
                                      int64_t stride) {
  Vector d[3][6];
#pragma GCC unroll 8
  for (int j = 0; j < 6; ++j) {
    Vector line[5], results[3];
#pragma GCC unroll 8
    for (int i = 0; i < 5; ++i) line[i] = load_where(columns[j], rows[i] + j * kLanes);
    Half(line, results);
#pragma GCC unroll 4
    for (int i = 0; i < 3; ++i) d[i][j] = results[i];
  }
#pragma GCC unroll 4
  for (int i = 0; i < 3; ++i) {
    transform_line<6>(d[i], 1);
#pragma GCC unroll 8
    for (int j = 0; j < 6; ++j, to += stride) write<kWriting>(to, d[i][j]);
  }
}

// G dy G^T of a square of 4 x 4 pixels, likewise.
template <Writing kWriting>
[[gnu::noinline]] void transform_gradient_square(const float* const* rows, const Mask* columns, float* to,
                                                 int64_t stride) {
  Vector d[6][4];
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
    Vector line[4], results[6];
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) line[i] = load_where(columns[j], rows[i] + j * kLanes);
    expand_line<6, 4>(line, 1, results, 1);
#pragma GCC unroll 8
    for (int i = 0; i < 6; ++i) d[i][j] = results[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < 6; ++i) {
    Vector results[6];
    expand_line<6, 4>(d[i], 1, results, 1);
#pragma GCC unroll 8
    for (int j = 0; j < 6; ++j, to += stride) write<kWriting>(to, results[j]);
  }
}

// B^T d B of the image's tiles.
template <int Tile, int M, typename Element>
struct ImageTiles {
  static constexpr int kValues = Tile * Tile;
  static constexpr bool kStaysInRegisters = Tile == 6 && std::is_same_v<Element, float> && kRegisters >= 32;
  const Problem& p;
  const Element* x;

  // load and spread at once.
  template <Writing kWriting>
  void transform(const TilePosition& at, int64_t b, float* to, int64_t stride) const {
    const float* block = x + (at.image * (p.in_channels / kLanes) + b) * p.in_height * p.in_width * kLanes;
    const int64_t top = at.row * M - p.before_y, left = at.column * M - p.before_x;
    const TilePixels<6> pixels(block, p.in_height, p.in_width, top, left);
    fetch_pixels<Tile, M>(block, p.in_width, top, left + Tile);
    transform_half<kWriting, transform_first_half>(pixels.rows, pixels.columns, to, stride);
    transform_half<kWriting, transform_second_half>(pixels.rows + 1, pixels.columns, to + 18 * stride,
                                                    stride);
  }
  void load(const TilePosition& at, int64_t b, Vector* d) const {
    const int64_t blocks = p.in_channels / kLanes, pixels = p.in_height * p.in_width;
    const Element* block = x + (at.image * blocks + b) * pixels * kLanes;
    const int64_t top = at.row * M - p.before_y, left = at.column * M - p.before_x;
    for_each_column<Tile>(block, p.in_height, p.in_width, top, left, [&](int j, Vector* line) {
      transform_line<Tile>(line, 1);
#pragma GCC unroll 8
      for (int i = 0; i < Tile; ++i) d[i * Tile + j] = line[i];
    });
    fetch_pixels<Tile, M>(block, p.in_width, top, left + Tile);
  }
  PixelsAhead<Element> ahead(int64_t first, int64_t last) const {
    return {p, {x, p.in_channels, p.in_height, p.in_width}, {Tile, M, p.before_y}, first, last};
  }
  template <typename Store>
  static void spread(const Vector* d, const Store& store) {
    for (int i = 0; i < Tile; ++i) {
      Vector line[Tile];  // not in place: what is in memory would be written there once more
#pragma GCC unroll 8
      for (int j = 0; j < Tile; ++j) line[j] = d[i * Tile + j];
      transform_line<Tile>(line, 1);
#pragma GCC unroll 8
      for (int j = 0; j < Tile; ++j) store(line[j]);
    }
  }
};

// G dy G^T of the output's tiles.
template <int Tile, int M, typename Element>
struct GradientTiles {
  static constexpr int kValues = Tile * M;
  static constexpr bool kStaysInRegisters =
      Tile == 6 && M == 4 && std::is_same_v<Element, float> && kRegisters >= 32;
  const Problem& p;
  const Element* dy;

  template <Writing kWriting>
  void transform(const TilePosition& at, int64_t b, float* to, int64_t stride) const {
    const float* block =
        dy + (at.image * (p.out_channels_in_memory() / kLanes) + b) * p.out_height * p.out_width * kLanes;
    const int64_t top = at.row * M, left = at.column * M;
    const TilePixels<4> pixels(block, p.out_height, p.out_width, top, left);
    fetch_pixels<M, M>(block, p.out_width, top, left + M);
    transform_gradient_square<kWriting>(pixels.rows, pixels.columns, to, stride);
  }
  void load(const TilePosition& at, int64_t b, Vector* d) const {
    const int64_t blocks = p.out_channels_in_memory() / kLanes, pixels = p.out_height * p.out_width;
    const Element* block = dy + (at.image * blocks + b) * pixels * kLanes;
    for_each_column<M>(block, p.out_height, p.out_width, at.row * M, at.column * M,
                       [&](int j, const Vector* line) { expand_line<Tile, M>(line, 1, d + j, M); });
    fetch_pixels<M, M>(block, p.out_width, at.row * M, (at.column + 1) * M);
  }
  PixelsAhead<Element> ahead(int64_t first, int64_t last) const {
    return {p, {dy, p.out_channels_in_memory(), p.out_height, p.out_width}, {M, M, 0}, first, last};
  }
  template <typename Store>
  static void spread(const Vector* d, const Store& store) {
    expand_rows<Tile, M>(d, store);
  }
};

// The points' matrices of a part of the tiles.
template <Writing kWriting, typename Tiles, typename Out>
void transform_tiles(const Problem& p, const Tiles& tiles, const Part& part, const Strides& strides,
                     Out* out) {
  const int64_t there = std::clamp(p.tiles() - part.origin, part.first, part.last);
  TilePosition at(p, part.origin + part.first);
  for (int64_t t = part.first; t < there; ++t, at.advance())
    for (int64_t b = part.first_block; b < part.last_block; ++b) {
      Out* row = out + t * strides.row + b * strides.block;
      if constexpr (Tiles::kStaysInRegisters) {
        tiles.template transform<kWriting>(at, b, row, strides.point);
        continue;
      }
      Vector d[Tiles::kValues];
      tiles.load(at, b, d);
      tiles.spread(d, [&row, stride = strides.point](Vector value) {
        write<kWriting>(row, value);
        row += stride;
      });
    }
  for (int64_t t = there; t < part.last; ++t)
    for (int64_t b = part.first_block; b < part.last_block; ++b)
      for (int point = 0; point < p.points(); ++point)
        write<kWriting>(out + t * strides.row + b * strides.block + point * strides.point, zero());
  finish<kWriting>();
}

// How filters are transformed: apply(g, store) hands the values of all points to `store`, in their order.
template <int Tile, int R>
struct Expansion {
  static constexpr int kSide = R;
  template <typename Store>
  static void apply(const Vector* g, const Store& store) {
    expand<Tile, R>(g, store);
  }
};

// How products are transformed back: apply(products, stride, result) makes kSide x kSide values
// of kPoints products.
template <int Tile, int N>
struct Contraction {
  static constexpr int kSide = N, kPoints = Tile * Tile;
  static void apply(const float* products, int64_t stride, Vector* result) {
    contract<Tile, N>(products, stride, result);
  }
};

// The outputs of the products, of which the first belong to the part's first block, plus bias[out] unless
// null, after an epilogue (epilogues.h).
template <Writing kWriting, typename Contracts, typename Element, typename Applied>
void store_outputs(const Problem& p, const float* products, const Part& part, const Strides& strides,
                   const float* bias, Element* y, Applied& epilogue) {
  constexpr int M = Contracts::kSide;
  const int64_t blocks = p.out_channels_in_memory() / kLanes, pixels = p.out_height * p.out_width;
  const int64_t there = std::min(part.last, p.tiles() - part.origin);
  TilePosition at(p, part.origin + part.first);
  for (int64_t t = part.first; t < there; ++t, at.advance()) {
    const int64_t rows = std::min<int64_t>(M, p.out_height - at.row * M);
    const int64_t columns = std::min<int64_t>(M, p.out_width - at.column * M);
    for (int64_t b = part.first_block; b < part.last_block; ++b) {
      Vector result[M * M];
      Contracts::apply(products + t * strides.row + (b - part.first_block) * strides.block, strides.point,
                       result);
      const int64_t first_pixel = (at.image * blocks + b) * pixels + at.row * M * p.out_width + at.column * M;
      epilogue.template apply<M>({b, rows, columns, first_pixel * kLanes, p.out_width * kLanes}, result);
      const Vector offset = bias ? load(bias + b * kLanes) : zero();
      Element* corner = y + first_pixel * kLanes;
      if (rows == M && columns == M) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < M; ++i)
#pragma GCC unroll 8
          for (int64_t j = 0; j < M; ++j)
            write<kWriting>(corner + (i * p.out_width + j) * kLanes, result[i * M + j] + offset);
        continue;
      }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          write<kWriting>(corner + (i * p.out_width + j) * kLanes, result[i * M + j] + offset);
    }
    epilogue.advance(rows * columns);
  }
}

template <Writing kWriting, int Tile, int M, typename Element>
void store_outputs(const Problem& p, const float* products, const Part& part, const Strides& strides,
                   const float* bias, Element* y) {
  NoEpilogue none;
  store_outputs<kWriting, Contraction<Tile, M>>(p, products, part, strides, bias, y, none);
}

// The same, around the caches or not; the part is one of the epilogue's groups if there is something to do.
template <typename Contracts>
void store_image(const Problem& p, const float* products, const Part& part, const Strides& strides,
                 const float* bias, float* y, bool streams, const Epilogue& epilogue = {},
                 int64_t group = 0) {
  const auto store = [&](auto& applied) {
    if (streams && (kFillsLine || p.out_width % 2 == 0))
      store_outputs<Writing::kStreamed, Contracts>(p, products, part, strides, bias, y, applied);
    else
      store_outputs<Writing::kCached, Contracts>(p, products, part, strides, bias, y, applied);
  };
  if (epilogue.moments) {
    Moments moments(epilogue.moments + group * 3 * p.out_channels, p.out_channels);
    store(moments);
    moments.finish();
  } else if (epilogue.gradient.sums) {
    GradientSums sums(epilogue.gradient, group, p.out_channels);
    store(sums);
  } else {
    NoEpilogue none;
    store(none);
  }
}

// u of a vector of out-channels at a time: its rows are in-channels, of which [first, last) are made.
// `taps(in, out, g)` finds their R x R.
template <Writing kWriting, typename Expands, typename Taps>
void transform_taps(const Problem& p, const Strides& strides, float* u, int64_t first, int64_t last,
                    const Taps& taps) {
  constexpr int R = Expands::kSide;
  for (int64_t in = first; in < last; ++in)
    for (int64_t out = 0; out < p.out_channels; out += kLanes) {
      Vector g[R * R];
      taps(in, out, g);
      float* to = u + in * strides.row + out / kLanes * strides.block;
      Expands::apply(g, [&](Vector value) {
        write<kWriting>(to, value);
        to += strides.point;
      });
    }
  finish<kWriting>();
}

template <Writing kWriting, typename Expands>
void transform_filter(const Problem& p, const float* filters, const Strides& strides, float* u, int64_t first,
                      int64_t last) {
  constexpr int R = Expands::kSide;
  const int64_t distance = p.in_channels * R * R;
  transform_taps<kWriting, Expands>(p, strides, u, first, last, [&](int64_t in, int64_t out, Vector* g) {
    load_taps<R>(filters + out * distance + in * R * R, distance, g);
  });
}

template <Writing kWriting, typename Expands>
void transform_turned_filter(const Problem& p, const float* filters, const Strides& strides, float* u,
                             int64_t first, int64_t last) {
  constexpr int R = Expands::kSide;
  transform_taps<kWriting, Expands>(p, strides, u, first, last, [&](int64_t in, int64_t out, Vector* g) {
    Vector taps[R * R];
    load_taps<R>(filters + (in * p.out_channels_in_memory() + out) * R * R, R * R, taps);
#pragma GCC unroll 25
    for (int i = 0; i < R * R; ++i) g[i] = taps[R * R - 1 - i];
  });
}

// The filter's gradient from the sum of `parts` sums of products: their rows are out-channels, of which
// [first, last) are made.
template <typename Contracts>
void finish_filter(const Problem& p, const float* sums, int64_t parts, const Strides& strides, float* filters,
                   int64_t first, int64_t last) {
  constexpr int R = Contracts::kSide, kPoints = Contracts::kPoints;
  const int64_t part_size = kPoints * strides.point;
  for (int64_t out = first; out < last; ++out)
    for (int64_t in = 0; in < p.in_channels; in += kLanes) {
      alignas(64) float total[kPoints][kLanes];
      for (int point = 0; point < kPoints; ++point) {
        const float* at = sums + point * strides.point + out * strides.row + in / kLanes * strides.block;
        Vector sum = load(at);
        for (int64_t part = 1; part < parts; ++part) sum = sum + load(at + part * part_size);
        store(total[point], sum);
      }
      Vector result[R * R];
      Contracts::apply(total[0], kLanes, result);
      store_taps<R>(result, filters + (out * p.in_channels + in) * R * R, R * R);
    }
}

template <int Tile, int R>
void finish_filter(const Problem& p, const float* sums, int64_t parts, const Strides& strides, float* filters,
                   int64_t first, int64_t last) {
  finish_filter<Contraction<Tile, R>>(p, sums, parts, strides, filters, first, last);
}

}  // namespace MOX_LANES
}  // namespace mox::winograd
