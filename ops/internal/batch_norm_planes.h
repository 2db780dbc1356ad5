// The loops of batch_norm_loops.h in terms of a vector type `Simd`; each instruction set includes them once.
#pragma once

#include <immintrin.h>

#include "ops/internal/batch_norm_loops.h"

namespace mox::normalisation {

// kVectors * Simd::kLanes channels; where the pixels are not spaced, the distance from one to the next is known here, which
// makes loops over blocks of channels faster.
template <typename Simd, typename T, int kVectors, bool kIsSpaced>
struct Planes {
  using Vector = typename Simd::Vector;
  static constexpr int kLanes = Simd::kLanes, kWidth = kVectors * kLanes;

  static void statistics(const Pixels<T>& plane, float* mean, float* squares) {
    const T* x = plane.first;
    const int64_t pixels = plane.count, distance = distance_of(plane.distance);
    constexpr int kSums = 4;  // independent, to hide the latency of an addition
    Vector sums[kSums][kVectors], center[kVectors];
    const auto start = [&] {
      for (auto& row : sums)
        for (Vector& sum : row) sum = Simd::zero();
    };
    const auto total = [&](int v) {
      return Simd::add(Simd::add(sums[0][v], sums[1][v]), Simd::add(sums[2][v], sums[3][v]));
    };
    start();
    int64_t p = 0;
    for (; p + kSums <= pixels; p += kSums)
      for (int s = 0; s < kSums; ++s)
        for (int v = 0; v < kVectors; ++v)
          sums[s][v] = Simd::add(sums[s][v], Simd::load(x + (p + s) * distance + v * kLanes));
    for (; p < pixels; ++p)
      for (int v = 0; v < kVectors; ++v)
        sums[0][v] = Simd::add(sums[0][v], Simd::load(x + p * distance + v * kLanes));
    for (int v = 0; v < kVectors; ++v) {
      center[v] = Simd::multiply(total(v), Simd::broadcast(1.0f / static_cast<float>(pixels)));
      Simd::store(mean + v * kLanes, center[v]);
    }
    start();
    const auto add_square = [&](int s, int v, int64_t pixel) {
      const Vector d = Simd::subtract(Simd::load(x + pixel * distance + v * kLanes), center[v]);
      sums[s][v] = Simd::multiply_add(d, d, sums[s][v]);
    };
    for (p = 0; p + kSums <= pixels; p += kSums)
      for (int s = 0; s < kSums; ++s)
        for (int v = 0; v < kVectors; ++v) add_square(s, v, p + s);
    for (; p < pixels; ++p)
      for (int v = 0; v < kVectors; ++v) add_square(0, v, p);
    for (int v = 0; v < kVectors; ++v) Simd::store(squares + v * kLanes, total(v));
  }

  static void normalise(const ForwardPlane<T>& plane) {
    if (plane.residual) {
      plane.activation.clips ? normalise<true, true>(plane) : normalise<true, false>(plane);
    } else {
      plane.activation.clips ? normalise<false, true>(plane) : normalise<false, false>(plane);
    }
  }

  static void reduce(const BackwardPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    if (plane.dz)
      return with_options(plane,
                          [&](auto options) { reduce<decltype(options), true>(plane, sum_dz, sum_dz_x); });
    with_options(plane, [&](auto options) { reduce<decltype(options), false>(plane, sum_dz, sum_dz_x); });
  }

  static void differentiate(const BackwardPlane<T>& plane) {
    with_options(plane, [&](auto options) { differentiate<decltype(options)>(plane); });
  }

 private:
  static int64_t distance_of(int64_t distance) { return kIsSpaced ? distance : kWidth; }

  static Vector normalised(Vector x, Vector mean, Vector factor, Vector offset) {
    return Simd::multiply_add(Simd::subtract(x, mean), factor, offset);
  }

  template <bool kHasResidual, bool kClips>
  static void normalise(const ForwardPlane<T>& plane) {
    const Vector low = Simd::broadcast(plane.activation.low), high = Simd::broadcast(plane.activation.high);
    const int64_t distance = distance_of(plane.distance);
    for (int v = 0; v < kVectors; ++v) {
      const Vector mean = Simd::load(plane.mean + v * kLanes), factor = Simd::load(plane.factor + v * kLanes),
                   offset = Simd::load(plane.offset + v * kLanes);
      for (int64_t p = 0; p < plane.pixels; ++p) {
        const int64_t i = p * distance + v * kLanes;
        Vector y = normalised(Simd::load(plane.x + i), mean, factor, offset);
        if constexpr (kHasResidual) y = Simd::add(y, Simd::load(plane.residual + i));
        if constexpr (kClips) y = Simd::minimum(high, Simd::maximum(low, y));
        Simd::store(plane.y + i, y);
      }
    }
  }

  template <bool kMore, MaskSource kFrom, bool kOpen>
  struct Options {
    static constexpr bool kHasMore = kMore, kIsOpen = kOpen;
    static constexpr MaskSource kMask = kFrom;
  };

  template <bool kMore, typename Body>
  static void with_mask(const BackwardPlane<T>& plane, Body body) {
    switch (plane.mask) {
      case MaskSource::kNone:
        return body(Options<kMore, MaskSource::kNone, false>());
      case MaskSource::kResult:
        return body(Options<kMore, MaskSource::kResult, true>());
      case MaskSource::kNormalised:
        break;
    }
    plane.activation.open ? body(Options<kMore, MaskSource::kNormalised, true>())
                          : body(Options<kMore, MaskSource::kNormalised, false>());
  }
  template <typename Body>
  static void with_options(const BackwardPlane<T>& plane, Body body) {
    plane.dy_more ? with_mask<true>(plane, body) : with_mask<false>(plane, body);
  }

  // What stays the same for a vector of channels.
  struct Channel {
    Channel(const BackwardPlane<T>& plane, int v)
        : mean(Simd::load(plane.mean + v * kLanes)),
          factor(Simd::load(plane.factor + v * kLanes)),
          offset(Simd::load(plane.offset + v * kLanes)),
          low(Simd::broadcast(plane.activation.low)),
          high(Simd::broadcast(plane.activation.high)) {}
    Vector mean, factor, offset, low, high;
  };

  template <typename Chosen>
  static Vector gradient(const BackwardPlane<T>& plane, const Channel& c, Vector x, int64_t i) {
    Vector dy = Simd::load(plane.dy + i);
    if constexpr (Chosen::kHasMore) dy = Simd::add(dy, Simd::load(plane.dy_more + i));
    if constexpr (Chosen::kMask == MaskSource::kNone) return dy;
    Vector value;
    if constexpr (Chosen::kMask == MaskSource::kResult) {
      value = Simd::load(plane.y + i);
    } else {
      value = normalised(x, c.mean, c.factor, c.offset);
    }
    return Chosen::kIsOpen ? Simd::where_above(value, c.low, c.high, dy)
                           : Simd::where_within(value, c.low, c.high, dy);
  }

  template <typename Chosen, bool kStores>
  static void reduce(const BackwardPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    const int64_t distance = distance_of(plane.distance);
    for (int v = 0; v < kVectors; ++v) {
      const Channel c(plane, v);
      constexpr int kSums = 4;
      Vector sums[kSums], products[kSums];
      for (int s = 0; s < kSums; ++s) sums[s] = products[s] = Simd::zero();
      const auto take = [&](int s, int64_t pixel) {
        const int64_t i = pixel * distance + v * kLanes;
        const Vector x = Simd::load(plane.x + i);
        const Vector dz = gradient<Chosen>(plane, c, x, i);
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
  static void differentiate(const BackwardPlane<T>& plane) {
    const int64_t distance = distance_of(plane.distance);
    for (int v = 0; v < kVectors; ++v) {
      const Channel c(plane, v);
      const Vector mean_dz = Simd::load(plane.mean_dz + v * kLanes),
                   slope = Simd::load(plane.slope + v * kLanes);
      for (int64_t p = 0; p < plane.pixels; ++p) {
        const int64_t i = p * distance + v * kLanes;
        const Vector x = Simd::load(plane.x + i);
        const Vector dz = gradient<Chosen>(plane, c, x, i);
        const Vector from_statistics = Simd::multiply_add(Simd::subtract(x, c.mean), slope, mean_dz);
        Simd::store(plane.dx + i, Simd::multiply(Simd::subtract(dz, from_statistics), c.factor));
      }
    }
  }
};

template <typename Simd, typename T, int kVectors, bool kIsSpaced>
constexpr Loops<T> make_loops() {
  using P = Planes<Simd, T, kVectors, kIsSpaced>;
  return {P::statistics, P::normalise, P::reduce, P::differentiate};
}

}  // namespace mox::normalisation
