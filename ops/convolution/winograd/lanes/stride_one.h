// Kernels for a stride of one pixel (ops/processor/lanes.h).
#pragma once

#include <algorithm>
#include <cstring>

#include "ops/convolution/winograd/internal/ranges_ahead.h"
#include "ops/convolution/winograd/lanes/products.h"
#include "ops/convolution/winograd/lanes/stages.h"

namespace mox::winograd {
inline namespace MOX_LANES {
namespace {

// Plain matrices, as the products here want them: u [in][out], sums [out][in].
Strides filter_strides(const Problem& p) { return {p.filter_stride(), p.out_channels, kLanes}; }
Strides sum_strides(const Problem& p) { return {p.filter_stride(), p.in_channels, kLanes}; }
Part whole_chunk(int64_t tile, int64_t chunk, int64_t channels) {
  return {tile, 0, chunk, 0, channels / kLanes};
}

// Tiles that are transformed while something else is fetched.
template <typename Tiles>
struct WhileFetching : Tiles {
  RangesAhead& ahead;

  void load(const TilePosition& at, int64_t b, Vector* d) const {
    ahead.fetch();
    Tiles::load(at, b, d);
  }

  template <Writing kWriting>
  void transform(const TilePosition& at, int64_t b, float* to, int64_t stride) const {
    ahead.fetch();
    Tiles::template transform<kWriting>(at, b, to, stride);
  }
};

// Pixels ahead are fetched during the products alone: during transforms they are what the next tiles need.
template <typename Tiles, typename Ahead>
void transform_chunk(const Problem& p, const Tiles& tiles, const Part& part, const Strides& strides,
                     float* out, Ahead& ahead) {
  if constexpr (std::is_same_v<Ahead, RangesAhead> && (Tiles::kStaysInRegisters || kRegisters < 32))
    transform_tiles<Writing::kCached>(p, WhileFetching<Tiles>{tiles, ahead}, part, strides, out);
  else
    transform_tiles<Writing::kCached>(p, tiles, part, strides, out);
}

// Tiles from `tile` on, `there` of them.
template <int Tile, int R, typename Ahead>
void correlate_chunk(const Problem& p, const float* x, const float* u, const float* bias, float* y,
                     bool streams, const Epilogue& epilogue, int64_t tile, int64_t there, int64_t chunk,
                     float* scratch, Ahead& ahead) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  // In the place of the tiles they all stay nearer to the core.
  float* products =
      can_be_in_place(p.out_channels, p.in_channels) ? scratch : scratch + p.points() * x_stride;
  transform_chunk(p, ImageTiles<Tile, Tile + 1 - R, float>{p, x}, whole_chunk(tile, chunk, p.in_channels),
                  {x_stride, p.in_channels, kLanes}, scratch, ahead);
  for (int point = 0; point < p.points(); ++point) {
    ahead.fetch();
    multiply_tiles(scratch + point * x_stride, u + point * p.filter_stride(), products + point * y_stride,
                   chunk, p.out_channels, p.in_channels);
  }
  store_image<Contraction<Tile, Tile + 1 - R>>(p, products, {tile, 0, there, 0, p.out_channels / kLanes},
                                               {y_stride, p.out_channels, kLanes}, bias, y, streams, epilogue,
                                               tile / chunk);
}

template <typename First, typename Second>
struct Together {
  First first;
  Second second;
  void fetch() {
    first.fetch();
    second.fetch();
  }
};

template <typename First, typename Second>
Together(First, Second) -> Together<First, Second>;

template <int Tile, int R>
void correlate(const Problem& p, const float* x, const float* u, const float* bias, float* y,
               const Epilogue& epilogue, int64_t first, int64_t last, int64_t chunk, float* scratch) {
  const ImageTiles<Tile, Tile + 1 - R, float> image{p, x};
  for (int64_t tile = first; tile < last; tile += chunk) {
    Together ahead{image.ahead(tile + chunk, tile + 2 * chunk),
                   EpilogueAhead(p, epilogue.gradient, tile, tile + chunk)};
    correlate_chunk<Tile, R>(p, x, u, bias, y, is_streamed(p.output_floats(), y), epilogue, tile,
                             std::min(chunk, last - tile), chunk, scratch, ahead);
  }
  finish<Writing::kStreamed>();
}

template <int Tile, int R>
void correlate_images(const Problem& p, const float* x, const float* u, float* y, bool streams,
                      const Epilogue& epilogue, RangesAhead& ahead, int64_t chunk, float* scratch) {
  for (int64_t tile = 0; tile < p.tiles(); tile += chunk)
    correlate_chunk<Tile, R>(p, x, u, nullptr, y, streams, epilogue, tile, std::min(chunk, p.tiles() - tile),
                             chunk, scratch, ahead);
  finish<Writing::kStreamed>();
}

template <int Tile, int R, typename Ahead>
void accumulate_chunk(const Problem& p, const float* x, const float* dy, float* sums, bool adds, int64_t tile,
                      int64_t chunk, float* scratch, Ahead& ahead) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* gradients = scratch + p.points() * x_stride;
  transform_chunk(p, ImageTiles<Tile, Tile + 1 - R, float>{p, x}, whole_chunk(tile, chunk, p.in_channels),
                  {x_stride, p.in_channels, kLanes}, scratch, ahead);
  transform_chunk(p, GradientTiles<Tile, Tile + 1 - R, float>{p, dy},
                  whole_chunk(tile, chunk, p.out_channels), {y_stride, p.out_channels, kLanes}, gradients,
                  ahead);
  for (int point = 0; point < p.points(); ++point) {
    ahead.fetch();
    accumulate_tiles(gradients + point * y_stride, scratch + point * x_stride,
                     sums + point * p.filter_stride(), p.out_channels, p.in_channels, chunk, adds);
  }
}

template <int Tile, int R>
void accumulate_filter(const Problem& p, const float* x, const float* dy, float* sums, int64_t first,
                       int64_t last, int64_t chunk, float* scratch) {
  const ImageTiles<Tile, Tile + 1 - R, float> image{p, x};
  const GradientTiles<Tile, Tile + 1 - R, float> gradient{p, dy};
  if (first == last) std::memset(sums, 0, (p.points() * p.filter_stride()) * sizeof(float));
  for (int64_t tile = first; tile < last; tile += chunk) {
    Together ahead{image.ahead(tile + chunk, tile + 2 * chunk),
                   gradient.ahead(tile + chunk, tile + 2 * chunk)};
    accumulate_chunk<Tile, R>(p, x, dy, sums, tile > first, tile, chunk, scratch, ahead);
  }
}

template <int Tile, int R>
void accumulate_images(const Problem& p, const float* x, const float* dy, float* sums, bool adds,
                       RangesAhead& ahead, int64_t chunk, float* scratch) {
  for (int64_t tile = 0; tile < p.tiles(); tile += chunk)
    accumulate_chunk<Tile, R>(p, x, dy, sums, adds || tile > 0, tile, chunk, scratch, ahead);
}

template <int Tile, int R>
constexpr Kernels kKernels{
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      transform_filter<Writing::kCached, Expansion<Tile, R>>(p, filters, filter_strides(p), u, first, last);
    },
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      transform_turned_filter<Writing::kCached, Expansion<Tile, R>>(p, filters, filter_strides(p), u, first,
                                                                    last);
    },
    correlate<Tile, R>,
    accumulate_filter<Tile, R>,
    [](const Problem& p, const float* sums, int64_t parts, float* filters, int64_t first, int64_t last) {
      finish_filter<Tile, R>(p, sums, parts, sum_strides(p), filters, first, last);
    },
    correlate_images<Tile, R>,
    accumulate_images<Tile, R>};

const Kernels& kernels(int tile, int window) {
  if (tile == 8) return kKernels<8, 5>;
  return window == 3 ? kKernels<6, 3> : kKernels<6, 5>;
}

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::winograd
