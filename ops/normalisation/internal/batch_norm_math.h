// What the loops of batch normalisation compute of one vector of channels, in terms of a vector type `Simd`,
// and the choice among their forms.
#pragma once

#include <algorithm>
#include <cstdint>

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

// Pixels that are added up in float32. Sums over more of them are of such runs, in float64: the error does
// not grow with the plane, and the second look at a run finds it in a core's own cache.
constexpr int64_t kRun = 4096;
// Channels of a plane of more pixels, at most: of more channels, batch_norm_image.cc has fewer pixels.
constexpr int64_t kMostChannelsOfRuns = 16;

// The mean and the sum of squared distances from it, of the runs so far. Of a channel.
struct RunStatistics {
  double pixels = 0, mean = 0, squares = 0;

  void add(double run_pixels, double run_mean, double run_squares) {
    const double all = pixels + run_pixels, distance = run_mean - mean;
    squares += run_squares + distance * distance * (pixels * run_pixels / all);
    mean += distance * (run_pixels / all);
    pixels = all;
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

  static void statistics(const T* x, int64_t pixels, int64_t width, float* mean, float* rest,
                         float* squares) {
    if (is_one_run(pixels, width)) return Form::statistics(x, pixels, width, mean, rest, squares);
    RunStatistics all[kMostChannelsOfRuns];
    for (int64_t first = 0; first < pixels; first += kRun) {
      const int64_t count = std::min(kRun, pixels - first);
      Form::statistics(x + first * width, count, width, mean, rest, squares);
      for (int64_t c = 0; c < width; ++c)
        all[c].add(count, static_cast<double>(mean[c]) + rest[c], squares[c]);
    }
    for (int64_t c = 0; c < width; ++c) {
      mean[c] = all[c].mean;
      rest[c] = all[c].mean - mean[c];
      squares[c] = all[c].squares;
    }
  }

  static void reduce(const GradientPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    const int64_t width = plane.width;
    if (is_one_run(plane.pixels, width)) return reduce_run(plane, sum_dz, sum_dz_x);
    double sums[kMostChannelsOfRuns] = {}, products[kMostChannelsOfRuns] = {};
    for (int64_t first = 0; first < plane.pixels; first += kRun) {
      const auto at_run = [at = first * width](auto* values) { return values ? values + at : nullptr; };
      GradientPlane<T> run = plane;
      run.pixels = std::min(kRun, plane.pixels - first);
      run.x = at_run(plane.x);
      run.dy = at_run(plane.dy);
      run.dy_more = at_run(plane.dy_more);
      run.y = at_run(plane.y);
      run.dz = at_run(plane.dz);
      reduce_run(run, sum_dz, sum_dz_x);
      for (int64_t c = 0; c < width; ++c) {
        sums[c] += sum_dz[c];
        products[c] += sum_dz_x[c];
      }
    }
    std::copy_n(sums, width, sum_dz);
    std::copy_n(products, width, sum_dz_x);
  }

  static void differentiate(const GradientPlane<T>& plane) {
    Math::with_options(plane, [&](auto options) { Form::template differentiate<decltype(options)>(plane); });
  }

  static constexpr Loops<T> kLoops = {statistics, normalise, reduce, differentiate};

 private:
  static bool is_one_run(int64_t pixels, int64_t width) {
    return pixels <= kRun || width > kMostChannelsOfRuns;
  }

  static void reduce_run(const GradientPlane<T>& plane, float* sum_dz, float* sum_dz_x) {
    if (plane.dz)
      return Math::with_options(plane, [&](auto options) {
        Form::template reduce<decltype(options), true>(plane, sum_dz, sum_dz_x);
      });
    Math::with_options(plane, [&](auto options) {
      Form::template reduce<decltype(options), false>(plane, sum_dz, sum_dz_x);
    });
  }
};

}  // namespace mox::normalisation
