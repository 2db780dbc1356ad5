// The loops of batch_norm_loops.h over blocks of channels, in terms of a vector type `Simd`; each instruction
// set includes them once.
#pragma once

#include <immintrin.h>

#include "ops/normalisation/internal/batch_norm_math.h"

namespace mox::normalisation {

// kVectors * Simd::kLanes channels.
template <typename Simd, typename T, int kVectors>
struct Planes {
  using Math = VectorMath<Simd, T>;
  using Vector = typename Simd::Vector;
  using Channel = typename Math::Channel;
  static constexpr int kLanes = Simd::kLanes, kWidth = kVectors * kLanes;

  static void statistics(const T* x, int64_t pixels, int64_t, float* mean, float* rest, float* squares) {
    constexpr int kSums = 4;  // independent, to hide the latency of an addition
    Vector sums[kSums][kVectors], center[kVectors];
    for (auto& row : sums)
      for (Vector& sum : row) sum = Simd::zero();
    int64_t p = 0;
    for (; p + kSums <= pixels; p += kSums)
      for (int s = 0; s < kSums; ++s)
        for (int v = 0; v < kVectors; ++v)
          sums[s][v] = Simd::add(sums[s][v], Simd::load(x + (p + s) * kWidth + v * kLanes));
    for (; p < pixels; ++p)
      for (int v = 0; v < kVectors; ++v)
        sums[0][v] = Simd::add(sums[0][v], Simd::load(x + p * kWidth + v * kLanes));
    const Vector share = Simd::broadcast(1.0f / pixels);
    for (int v = 0; v < kVectors; ++v) {
      const Vector sum = Simd::add(Simd::add(sums[0][v], sums[1][v]), Simd::add(sums[2][v], sums[3][v]));
      center[v] = Simd::multiply(sum, share);
      Simd::store(mean + v * kLanes, center[v]);
    }
    constexpr int kPairs = 4 / kVectors;  // so that they and the centers stay in 16 registers
    Vector distances[kPairs][kVectors], products[kPairs][kVectors];
    for (int s = 0; s < kPairs; ++s)
      for (int v = 0; v < kVectors; ++v) distances[s][v] = products[s][v] = Simd::zero();
    const auto add_distance = [&](int s, int v, int64_t pixel) {
      const Vector d = Simd::subtract(Simd::load(x + pixel * kWidth + v * kLanes), center[v]);
      distances[s][v] = Simd::add(distances[s][v], d);
      products[s][v] = Simd::multiply_add(d, d, products[s][v]);
    };
    for (p = 0; p + kPairs <= pixels; p += kPairs)
      for (int s = 0; s < kPairs; ++s)
        for (int v = 0; v < kVectors; ++v) add_distance(s, v, p + s);
    for (; p < pixels; ++p)
      for (int v = 0; v < kVectors; ++v) add_distance(0, v, p);
    for (int v = 0; v < kVectors; ++v) {
      for (int s = 1; s < kPairs; ++s) {
        distances[0][v] = Simd::add(distances[0][v], distances[s][v]);
        products[0][v] = Simd::add(products[0][v], products[s][v]);
      }
      Math::store_statistics(distances[0][v], products[0][v], share, rest + v * kLanes, squares + v * kLanes);
    }
  }

  template <bool kHasResidual, bool kClips>
  static void normalise(const ForwardPlane<T>& plane) {
    const Vector low = Simd::broadcast(plane.activation.low), high = Simd::broadcast(plane.activation.high);
    for (int v = 0; v < kVectors; ++v) {
      const Vector mean = Simd::load(plane.mean + v * kLanes), factor = Simd::load(plane.factor + v * kLanes),
                   offset = Simd::load(plane.offset + v * kLanes);
      for (int64_t p = 0; p < plane.pixels; ++p) {
        const int64_t i = p * kWidth + v * kLanes;
        Vector y = Math::normalised(Simd::load(plane.x + i), mean, factor, offset);
        if constexpr (kHasResidual) y = Simd::add(y, Simd::load(plane.residual + i));
        if constexpr (kClips) y = Simd::minimum(high, Simd::maximum(low, y));
        Simd::store(plane.y + i, y);
      }
    }
  }

  template <typename Chosen, bool kStores>
  static void reduce(const GradientPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    for (int v = 0; v < kVectors; ++v) {
      const Channel c(plane, v * kLanes);
      constexpr int kSums = 4;
      Vector sums[kSums], products[kSums];
      for (int s = 0; s < kSums; ++s) sums[s] = products[s] = Simd::zero();
      const auto take = [&](int s, int64_t pixel) {
        const int64_t i = pixel * kWidth + v * kLanes;
        const Vector x = Simd::load(plane.x + i);
        const Vector dz = Math::template gradient<Chosen>(plane, c, x, i);
        if constexpr (kStores) Simd::store(plane.dz + i, dz);
        sums[s] = Simd::add(sums[s], dz);
        products[s] = Simd::multiply_add(dz, Simd::subtract(x, c.mean), products[s]);
      };
      int64_t p = 0;
      for (; p + kSums <= plane.pixels; p += kSums)
        for (int s = 0; s < kSums; ++s) take(s, p + s);
      for (; p < plane.pixels; ++p) take(0, p);
      Simd::store(sum_dz + v * kLanes, Simd::add(Simd::add(sums[0], sums[1]), Simd::add(sums[2], sums[3])));
      Simd::store(sum_dz_x + v * kLanes,
                  Simd::add(Simd::add(products[0], products[1]), Simd::add(products[2], products[3])));
    }
  }

  template <typename Chosen>
  static void differentiate(const GradientPlane<T>& plane) {
    for (int v = 0; v < kVectors; ++v) {
      const Channel c(plane, v * kLanes);
      const Vector mean_dz = Simd::load(plane.mean_dz + v * kLanes),
                   slope = Simd::load(plane.slope + v * kLanes);
      for (int64_t p = 0; p < plane.pixels; ++p) {
        const int64_t i = p * kWidth + v * kLanes;
        const Vector x = Simd::load(plane.x + i);
        const Vector dz = Math::template gradient<Chosen>(plane, c, x, i);
        const Vector from_statistics = Simd::multiply_add(Simd::subtract(x, c.mean), slope, mean_dz);
        Simd::store(plane.dx + i, Simd::multiply(Simd::subtract(dz, from_statistics), c.factor));
      }
    }
  }
};

template <typename Simd, typename T, int kVectors>
constexpr Loops<T> loops_over_blocks() {
  return LoopsByOptions<Planes<Simd, T, kVectors>, Simd, T>::kLoops;
}

}  // namespace mox::normalisation
