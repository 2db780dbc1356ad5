// The inner loops of batch normalisation, compiled for two instruction sets.
//
// All work on a plane: pixels and channels that lie side by side in each, [pixels][width]. That is one sample
// and one block of 8 or 16 channels, or, with channels last, a group of pixels and all channels. What is per
// channel are arrays of `width` floats. Values are float or BFloat16 in memory and float in registers.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/tensor/dtype.h"

namespace mox::normalisation {

// What follows the normalisation, and is differentiated with it.
struct Activation {
  bool clips = false;  // to [low, high]; NaN stays NaN
  float low = 0, high = 0;
  bool open = false;  // the gradient is zero where the result is `low` (relu: low = 0, high = infinity)
};

// What a distance from the mean is multiplied by.
inline float channel_factor(float scale, float variance, double epsilon) {
  return static_cast<float>(scale / std::sqrt(static_cast<double>(variance) + epsilon));
}

enum class MaskSource {
  kNone,
  kNormalised,  // the value before the activation, computed again from x
  kResult,      // y, the value after it
};

template <typename T>
struct ForwardPlane {
  int64_t pixels, width;
  const T* x;
  const T* residual;  // added before the activation; or null
  T* y;
  const float *mean, *factor, *offset;  // y = activation((x - mean) * factor + offset + residual)
  Activation activation;
};

// dz = dy + dy_more where the activation passed the value on, and 0 elsewhere.
template <typename T>
struct GradientPlane {
  int64_t pixels, width;
  const T *x, *dy, *dy_more;  // dy_more may be null
  const T* y;                 // for MaskSource::kResult
  T* dz;                      // where `reduce` writes dz, or null
  T* dx;                      // where `differentiate` writes (dz - mean_dz - (x - mean) * slope) * factor
  const float *mean, *factor, *offset;
  const float *mean_dz, *slope;
  Activation activation;
  MaskSource mask;
};

template <typename T>
struct Loops {
  // The plane's mean, and the sum of the squared distances from it. The mean is `mean` + `rest`: one float32
  // holds too little of it where it is large beside the deviation.
  void (*statistics)(const T* x, int64_t pixels, int64_t width, float* mean, float* rest, float* squares);
  void (*normalise)(const ForwardPlane<T>& plane);
  // The sums of dz and of dz * (x - mean); writes dz if wanted.
  void (*reduce)(const GradientPlane<T>& plane, float* sum_dz, float* sum_dz_x);
  // Takes dz from dy, dy_more and the mask again; with dz stored by `reduce`, hand it in as dy
  // without a mask.
  void (*differentiate)(const GradientPlane<T>& plane);
};

// For blocks of 8 and of 16 channels, and for channels last, in multiples of 8 and in any number.
extern const Loops<float> kFloatAvx2[4];
extern const Loops<BFloat16> kBFloat16Avx2[4];
// For blocks of 16 channels, and for channels last, in multiples of 16; on processors with AVX-512F.
extern const Loops<float> kFloatAvx512[2];
extern const Loops<BFloat16> kBFloat16Avx512[2];
// Also AVX512_BF16: results that are subnormal become zero.
extern const Loops<BFloat16> kBFloat16Avx512BFloat16[2];

}  // namespace mox::normalisation
