// Kernels for strides of two pixels and of half a pixel (ops/processor/lanes.h).
#pragma once

#include <algorithm>
#include <cstring>

#include "ops/convolution/winograd/lanes/products.h"
#include "ops/convolution/winograd/lanes/strided_transforms.h"

namespace mox::winograd {
inline namespace MOX_LANES {
namespace {

constexpr int kPoints = kStridedPoints * kStridedPoints, kFilters = kStridedFilters * kStridedFilters;

constexpr int filter_of(int point) {
  return strided_filter(point / kStridedPoints) * kStridedFilters + strided_filter(point % kStridedPoints);
}
// Whether no point before it has the same filter.
constexpr bool is_first_of_filter(int point) {
  return point / kStridedPoints <= 5 && point % kStridedPoints <= 5;
}

// Plain matrices: u [in][out], sums [out][in].
Strides filter_strides(const Problem& p) { return {p.filter_stride(), p.out_channels, kLanes}; }
Strides sum_strides(const Problem& p) { return {p.filter_stride(), p.in_channels, kLanes}; }

StridedImageTiles image_tiles(const Problem& p, const float* x) {
  return {p, x, p.in_channels, p.in_height, p.in_width, p.before_y, p.before_x};
}

template <typename Contracts, typename Tiles>
void correlate_tiles(const Problem& p, const Tiles& tiles, const float* u, const float* bias, float* y,
                     const Epilogue& epilogue, int64_t first, int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* products = scratch + kPoints * x_stride;
  for (int64_t tile = first; tile < last; tile += chunk) {
    transform_tiles<Writing::kCached>(p, tiles, {tile, 0, chunk, 0, p.in_channels / kLanes},
                                      {x_stride, p.in_channels, kLanes}, scratch);
    auto ahead = tiles.ahead(tile + chunk, tile + 2 * chunk);
    EpilogueAhead epilogue_ahead(p, epilogue.gradient, tile, tile + chunk);
    for (int point = 0; point < kPoints; ++point) {
      ahead.fetch();
      epilogue_ahead.fetch();
      multiply_tiles(scratch + point * x_stride, u + filter_of(point) * p.filter_stride(),
                     products + point * y_stride, chunk, p.out_channels, p.in_channels);
    }
    store_image<Contracts>(p, products, {tile, 0, std::min(chunk, last - tile), 0, p.out_channels / kLanes},
                           {y_stride, p.out_channels, kLanes}, bias, y, is_streamed(p.output_floats(), y),
                           epilogue, tile / chunk);
  }
  finish<Writing::kStreamed>();
}

void correlate(const Problem& p, const float* x, const float* u, const float* bias, float* y,
               const Epilogue& epilogue, int64_t first, int64_t last, int64_t chunk, float* scratch) {
  correlate_tiles<StridedOutputs>(p, image_tiles(p, x), u, bias, y, epilogue, first, last, chunk, scratch);
}

// Before: the rows and columns of padding in front of the image whose gradient is made.
template <int Before>
void correlate_gradient(const Problem& p, const float* dy, const float* u, const float* bias, float* dx,
                        const Epilogue& epilogue, int64_t first, int64_t last, int64_t chunk,
                        float* scratch) {
  const StridedOutputTiles<Before> tiles{p,          dy,         p.in_channels, p.in_height,
                                         p.in_width, 1 - Before, 1 - Before};
  correlate_tiles<StridedImageOutputs<Before>>(p, tiles, u, bias, dx, epilogue, first, last, chunk, scratch);
}

void accumulate_filter(const Problem& p, const float* x, const float* dy, float* sums, int64_t first,
                       int64_t last, int64_t chunk, float* scratch) {
  const int64_t x_stride = point_stride(chunk * p.in_channels),
                y_stride = point_stride(chunk * p.out_channels);
  float* gradients = scratch + kPoints * x_stride;
  const StridedImageTiles images = image_tiles(p, x);
  const StridedGradientTiles gradient_tiles{p, dy, p.out_channels, p.out_height, p.out_width, 0, 0};
  if (first == last) std::memset(sums, 0, (kFilters * p.filter_stride()) * sizeof(float));
  for (int64_t tile = first; tile < last; tile += chunk) {
    transform_tiles<Writing::kCached>(p, images, {tile, 0, chunk, 0, p.in_channels / kLanes},
                                      {x_stride, p.in_channels, kLanes}, scratch);
    transform_tiles<Writing::kCached>(p, gradient_tiles, {tile, 0, chunk, 0, p.out_channels / kLanes},
                                      {y_stride, p.out_channels, kLanes}, gradients);
    auto image_ahead = images.ahead(tile + chunk, tile + 2 * chunk);
    auto gradient_ahead = gradient_tiles.ahead(tile + chunk, tile + 2 * chunk);
    for (int point = 0; point < kPoints; ++point) {
      image_ahead.fetch();
      gradient_ahead.fetch();
      multiply<Singles, TilesAre::kTerms>(
          gradients + point * y_stride, p.out_channels, scratch + point * x_stride, p.in_channels,
          sums + filter_of(point) * p.filter_stride(), p.in_channels, p.out_channels, p.in_channels, chunk,
          tile > first || !is_first_of_filter(point));
    }
  }
}

template <auto kCorrelate>
constexpr Kernels kKernels{
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      transform_filter<Writing::kCached, StridedExpansion>(p, filters, filter_strides(p), u, first, last);
    },
    [](const Problem& p, const float* filters, float* u, int64_t first, int64_t last) {
      transform_turned_filter<Writing::kCached, StridedExpansion>(p, filters, filter_strides(p), u, first,
                                                                  last);
    },
    kCorrelate,
    accumulate_filter,
    [](const Problem& p, const float* sums, int64_t parts, float* filters, int64_t first, int64_t last) {
      finish_filter<StridedFilterOutputs>(p, sums, parts, sum_strides(p), filters, first, last);
    },
    nullptr,
    nullptr};

const Kernels& strided_kernels(Stride stride, int64_t before) {
  if (stride == Stride::kTwo) return kKernels<correlate>;
  return before == 0 ? kKernels<correlate_gradient<0>> : kKernels<correlate_gradient<1>>;
}

}  // namespace
}  // namespace MOX_LANES
}  // namespace mox::winograd
