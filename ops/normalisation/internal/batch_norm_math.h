// What the loops of batch normalisation compute of one vector of channels, in terms of a vector type `Simd`,
// and the choice among their forms.
#pragma once

#include "ops/normalisation/batch_norm_loops.h"

namespace mox::normalisation {

template <typename Simd, typename T>
struct VectorMath {
  using Vector = typename Simd::Vector;

  static Vector normalised(Vector x, Vector mean, Vector factor, Vector offset) {
    return Simd::multiply_add(Simd::subtract(x, mean), factor, offset);
  }

  // From the sums of distances from a center, and of their squares: how far the mean is from the center, and
  // the sum of squared distances from the mean itself. `share` is one over the number of distances.
  static void store_statistics(Vector sum, Vector squares, Vector share, float* rest, float* mean_squares) {
    const Vector distance = Simd::multiply(sum, share);
    Simd::store(rest, distance);
    // Rounding may leave a little less than nothing. NaN stays.
    const Vector away = Simd::multiply(sum, distance);
    Simd::store(mean_squares, Simd::maximum(Simd::zero(), Simd::subtract(squares, away)));
  }

  // body.operator()<kHasResidual, kClips>()
  template <typename Body>
  static void with_options(const ForwardPlane<T>& plane, Body body) {
    if (plane.residual) {
      plane.activation.clips ? body.template operator()<true, true>()
                             : body.template operator()<true, false>();
    } else {
      plane.activation.clips ? body.template operator()<false, true>()
                             : body.template operator()<false, false>();
    }
  }

  template <bool kMore, MaskSource kFrom, bool kOpen>
  struct Options {
    static constexpr bool kHasMore = kMore, kIsOpen = kOpen;
    static constexpr MaskSource kMask = kFrom;
  };

  // body(Options)
  template <typename Body>
  static void with_options(const GradientPlane<T>& plane, Body body) {
    plane.dy_more ? with_mask<true>(plane, body) : with_mask<false>(plane, body);
  }

  // What stays the same for a vector of channels.
  struct Channel {
    Channel(const GradientPlane<T>& plane, int64_t first)
        : mean(Simd::load(plane.mean + first)),
          factor(Simd::load(plane.factor + first)),
          offset(Simd::load(plane.offset + first)),
          low(Simd::broadcast(plane.activation.low)),
          high(Simd::broadcast(plane.activation.high)) {}
    Vector mean, factor, offset, low, high;
  };

  // dz of the elements from i on.
  template <typename Chosen>
  static Vector gradient(const GradientPlane<T>& plane, const Channel& c, Vector x, int64_t i) {
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

 private:
  template <bool kMore, typename Body>
  static void with_mask(const GradientPlane<T>& plane, Body body) {
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
};

// The loops of a form of planes, each with the options of the plane that it is given. `Form` has them as
// templates: `normalise` of <kHasResidual, kClips>, `reduce` of <Options, whether it stores dz>,
// `differentiate` of <Options>.
template <typename Form, typename Simd, typename T>
struct LoopsByOptions {
  using Math = VectorMath<Simd, T>;

  static void normalise(const ForwardPlane<T>& plane) {
    Math::with_options(plane, [&]<bool kHasResidual, bool kClips>() {
      Form::template normalise<kHasResidual, kClips>(plane);
    });
  }

  static void reduce(const GradientPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    if (plane.dz)
      return Math::with_options(plane, [&](auto options) {
        Form::template reduce<decltype(options), true>(plane, sum_dz, sum_dz_x);
      });
    Math::with_options(plane, [&](auto options) {
      Form::template reduce<decltype(options), false>(plane, sum_dz, sum_dz_x);
    });
  }

  static void differentiate(const GradientPlane<T>& plane) {
    Math::with_options(plane, [&](auto options) { Form::template differentiate<decltype(options)>(plane); });
  }

  static constexpr Loops<T> kLoops = {Form::statistics, normalise, reduce, differentiate};
};

}  // namespace mox::normalisation
