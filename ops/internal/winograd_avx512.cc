// Compiled with AVX-512 switched on; called only where the processor has it.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "ops/internal/winograd_products.h"
#include "ops/internal/winograd_ranges_ahead.h"
#include "ops/internal/winograd_stages.h"

namespace mox::winograd {
namespace {

// Plain matrices, as the products here want them: u [in][out], sums [out][in].
Strides filter_strides(const Problem& p) { return {p.filter_stride(), p.out_channels, kLanes}; }
Strides sum_strides(const Problem& p) { return {p.filter_stride(), p.in_channels, kLanes}; }
Part whole_chunk(int64_t tile, int64_t chunk, int64_t channels) {
  return {tile, 0, chunk, 0, channels / kLanes};
}

template <int Tile, int R>
void correlate(const Problem& p, const float* x, const float* u, const float* bias, float* y,
               const Epilogue& epilogue, int64_t first, int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  const ImageTiles<Tile, Tile + 1 - R, float> image{p, x};
  float* products = scratch + p.points() * x_stride;
  for (int64_t tile = first; tile < last; tile += chunk) {
    transform_tiles<Writing::kCached>(p, image, whole_chunk(tile, chunk, p.in_channels),
                                      {x_stride, p.in_channels, kLanes}, scratch);
    auto ahead = image.ahead(tile + chunk, tile + 2 * chunk);
    EpilogueAhead epilogue_ahead(p, epilogue.gradient, tile, tile + chunk);
    for (int point = 0; point < p.points(); ++point) {
      ahead.fetch();
      epilogue_ahead.fetch();
      multiply_tiles(scratch + point * x_stride, u + point * p.filter_stride(), products + point * y_stride,
                     chunk, p.out_channels, p.in_channels);
    }
    store_image<Contraction<Tile, Tile + 1 - R>>(
        p, products, {tile, 0, std::min(chunk, last - tile), 0, p.out_channels / kLanes},
        {y_stride, p.out_channels, kLanes}, bias, y, is_streamed(p.output_floats(), y), epilogue,
        tile / chunk);
  }
}

template <int Tile, int R>
void accumulate_filter(const Problem& p, const float* x, const float* dy, float* sums, int64_t first,
                       int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  const ImageTiles<Tile, Tile + 1 - R, float> image{p, x};
  const GradientTiles<Tile, Tile + 1 - R, float> gradient{p, dy};
  float* gradients = scratch + p.points() * x_stride;
  if (first == last)
    std::memset(sums, 0, static_cast<size_t>(p.points() * p.filter_stride()) * sizeof(float));
  for (int64_t tile = first; tile < last; tile += chunk) {
    transform_tiles<Writing::kCached>(p, image, whole_chunk(tile, chunk, p.in_channels),
                                      {x_stride, p.in_channels, kLanes}, scratch);
    transform_tiles<Writing::kCached>(p, gradient, whole_chunk(tile, chunk, p.out_channels),
                                      {y_stride, p.out_channels, kLanes}, gradients);
    auto image_ahead = image.ahead(tile + chunk, tile + 2 * chunk);
    auto gradient_ahead = gradient.ahead(tile + chunk, tile + 2 * chunk);
    for (int point = 0; point < p.points(); ++point) {
      image_ahead.fetch();
      gradient_ahead.fetch();
      multiply<Singles, TilesAre::kTerms>(gradients + point * y_stride, p.out_channels,
                                          scratch + point * x_stride, p.in_channels,
                                          sums + point * p.filter_stride(), p.in_channels, p.out_channels,
                                          p.in_channels, chunk, tile > first);
    }
  }
}

template <int Tile, int R>
void backpropagate(const BothGradients& run, int64_t chunk, float* scratch) {
  const Problem &forward = run.forward, &backward = run.backward;
  constexpr int M = Tile + 1 - R;
  const int64_t image_stride = point_stride(chunk * forward.in_channels),
                gradient_stride = point_stride(chunk * forward.out_channels);
  const ImageTiles<Tile, M, float> image{forward, run.image}, turned{backward, run.dy};
  const GradientTiles<Tile, M, float> gradient{forward, run.dy};
  float* gradients = scratch + forward.points() * image_stride;
  const int64_t chunks = (forward.tiles() + chunk - 1) / chunk;
  RangesAhead ahead(run.next, 2 * chunks * forward.points());
  for (int64_t tile = 0; tile < forward.tiles(); tile += chunk) {
    const Strides of_images{image_stride, forward.in_channels, kLanes},
        of_gradients{gradient_stride, forward.out_channels, kLanes};
    transform_tiles<Writing::kCached>(forward, image, whole_chunk(tile, chunk, forward.in_channels),
                                      of_images, scratch);
    transform_tiles<Writing::kCached>(forward, gradient, whole_chunk(tile, chunk, forward.out_channels),
                                      of_gradients, gradients);
    for (int point = 0; point < forward.points(); ++point) {
      ahead.fetch();
      multiply<Singles, TilesAre::kTerms>(
          gradients + point * gradient_stride, forward.out_channels, scratch + point * image_stride,
          forward.in_channels, run.sums + point * forward.filter_stride(), forward.in_channels,
          forward.out_channels, forward.in_channels, chunk, run.adds || tile > 0);
    }
    transform_tiles<Writing::kCached>(backward, turned, whole_chunk(tile, chunk, backward.in_channels),
                                      of_gradients, gradients);
    for (int point = 0; point < forward.points(); ++point) {
      ahead.fetch();
      multiply_tiles(gradients + point * gradient_stride, run.u + point * backward.filter_stride(),
                     scratch + point * image_stride, chunk, backward.out_channels, backward.in_channels);
    }
    store_image<Contraction<Tile, M>>(
        backward, scratch,
        {tile, 0, std::min(chunk, backward.tiles() - tile), 0, backward.out_channels / kLanes}, of_images,
        nullptr, run.dx, run.streams, run.epilogue, tile / chunk);
  }
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
    backpropagate<Tile, R>};

}  // namespace

const Kernels& kernels_avx512(int tile, int window) {
  if (tile == 8) return kKernels<8, 5>;
  return window == 3 ? kKernels<6, 3> : kKernels<6, 5>;
}

}  // namespace mox::winograd
