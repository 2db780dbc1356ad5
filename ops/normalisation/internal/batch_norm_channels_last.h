// The loops of batch_norm_loops.h over pixels with all their channels, in terms of a vector type `Simd`; each
// instruction set includes them once. They go through memory in its order, which is what the processor
// fetches ahead; what is per channel is read again for each pixel, from the nearest cache.
#pragma once

#include <algorithm>

#include "ops/normalisation/internal/batch_norm_math.h"

namespace mox::normalisation {

template <typename Simd, typename T>
struct PixelLoops {
  using Math = VectorMath<Simd, T>;
  using Vector = typename Simd::Vector;
  using Channel = typename Math::Channel;
  static constexpr int kLanes = Simd::kLanes;
  static constexpr int kTogether = 4;  // pixels whose sum is added to that of the others

  static void statistics(const T* x, int64_t pixels, int64_t width, float* mean, float* rest,
                         float* squares) {
    std::fill_n(mean, width, 0.0f);
    std::fill_n(rest, width, 0.0f);
    std::fill_n(squares, width, 0.0f);
    for_some_pixels(pixels, width, [&]<int kPixels>(int64_t c, int64_t first) {
      Vector sum = Simd::load(x + first);
      for (int p = 1; p < kPixels; ++p) sum = Simd::add(sum, Simd::load(x + first + p * width));
      Simd::store(mean + c, Simd::add(Simd::load(mean + c), sum));
    });
    const Vector share = Simd::broadcast(1.0f / pixels);
    for (int64_t c = 0; c < width; c += kLanes)
      Simd::store(mean + c, Simd::multiply(Simd::load(mean + c), share));
    for_some_pixels(pixels, width, [&]<int kPixels>(int64_t c, int64_t first) {
      const Vector center = Simd::load(mean + c);
      Vector sum = Simd::load(rest + c), products = Simd::load(squares + c);
      for (int p = 0; p < kPixels; ++p) {
        const Vector d = Simd::subtract(Simd::load(x + first + p * width), center);
        sum = Simd::add(sum, d);
        products = Simd::multiply_add(d, d, products);
      }
      Simd::store(rest + c, sum);
      Simd::store(squares + c, products);
    });
    for (int64_t c = 0; c < width; c += kLanes)
      Math::store_statistics(Simd::load(rest + c), Simd::load(squares + c), share, rest + c, squares + c);
  }

  template <bool kHasResidual, bool kClips>
  static void normalise(const ForwardPlane<T>& plane) {
    const Vector low = Simd::broadcast(plane.activation.low), high = Simd::broadcast(plane.activation.high);
    for_each_vector(plane.pixels, plane.width, [&](int64_t c, int64_t i) {
      Vector y = Math::normalised(Simd::load(plane.x + i), Simd::load(plane.mean + c),
                                  Simd::load(plane.factor + c), Simd::load(plane.offset + c));
      if constexpr (kHasResidual) y = Simd::add(y, Simd::load(plane.residual + i));
      if constexpr (kClips) y = Simd::minimum(high, Simd::maximum(low, y));
      Simd::store(plane.y + i, y);
    });
  }

  template <typename Chosen, bool kStores>
  static void reduce(const GradientPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    std::fill_n(sum_dz, plane.width, 0.0f);
    std::fill_n(sum_dz_x, plane.width, 0.0f);
    for_each_vector(plane.pixels, plane.width, [&](int64_t c, int64_t i) {
      const Channel channel(plane, c);
      const Vector x = Simd::load(plane.x + i);
      const Vector dz = Math::template gradient<Chosen>(plane, channel, x, i);
      if constexpr (kStores) Simd::store(plane.dz + i, dz);
      Simd::store(sum_dz + c, Simd::add(Simd::load(sum_dz + c), dz));
      const Vector distance = Simd::subtract(x, channel.mean);
      Simd::store(sum_dz_x + c, Simd::multiply_add(dz, distance, Simd::load(sum_dz_x + c)));
    });
  }

  template <typename Chosen>
  static void differentiate(const GradientPlane<T>& plane) {
    for_each_vector(plane.pixels, plane.width, [&](int64_t c, int64_t i) {
      const Channel channel(plane, c);
      const Vector x = Simd::load(plane.x + i);
      const Vector dz = Math::template gradient<Chosen>(plane, channel, x, i);
      const Vector from_statistics = Simd::multiply_add(
          Simd::subtract(x, channel.mean), Simd::load(plane.slope + c), Simd::load(plane.mean_dz + c));
      Simd::store(plane.dx + i, Simd::multiply(Simd::subtract(dz, from_statistics), channel.factor));
    });
  }

 private:
  // body.operator()<pixels>(channel, element) for every vector of channels of `pixels` pixels that lie
  // together, of which `element` is the first one's.
  template <typename Body>
  static void for_some_pixels(int64_t pixels, int64_t width, Body body) {
    int64_t p = 0;
    for (; p + kTogether <= pixels; p += kTogether)
      for (int64_t c = 0; c < width; c += kLanes) body.template operator()<kTogether>(c, p * width + c);
    for (; p < pixels; ++p)
      for (int64_t c = 0; c < width; c += kLanes) body.template operator()<1>(c, p * width + c);
  }

  // body(channel, element) for every vector of channels.
  template <typename Body>
  static void for_each_vector(int64_t pixels, int64_t width, Body body) {
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t c = 0; c < width; c += kLanes) body(c, p * width + c);
  }
};

template <typename Simd, typename T>
constexpr Loops<T> loops_over_pixels() {
  return LoopsByOptions<PixelLoops<Simd, T>, Simd, T>::kLoops;
}

}  // namespace mox::normalisation
