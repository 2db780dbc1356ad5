// Depthwise convolutions between two batch normalisations, each as one node with what lies before it: an
// image's block of channels is normalised and convolved, or its gradients are taken, while it is in the
// cache. The normalised image never goes through memory, nor does the gradient of the convolution's
// image as such.
//
// Each kernel takes planes, one sample's block of channels, and sums in their order: the bits do not depend
// on the team.
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "ops/normalisation/batch_norm_loops.h"
#include "ops/support/named_inputs.h"

namespace mox {

// Of a depthwise convolution of what a normalisation with its activation makes.
template <typename T>
struct DepthwiseOfNormalisedInputs {
  T filter = {}, x = {}, scale = {}, offset = {}, mean = {}, variance = {};

  static constexpr auto names() {
    using S = DepthwiseOfNormalisedInputs;
    return std::array<InputName<S, T>, 6>{{{"filter", &S::filter},
                                           {"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"mean", &S::mean},
                                           {"variance", &S::variance}}};
  }
};

// The same and the gradient of the convolution's result.
template <typename T>
struct DepthwiseGradientsInputs {
  T filter = {}, dy = {}, x = {}, scale = {}, offset = {}, mean = {}, variance = {};

  static constexpr auto names() {
    using S = DepthwiseGradientsInputs;
    return std::array<InputName<S, T>, 7>{{{"filter", &S::filter},
                                           {"dy", &S::dy},
                                           {"x", &S::x},
                                           {"scale", &S::scale},
                                           {"offset", &S::offset},
                                           {"mean", &S::mean},
                                           {"variance", &S::variance}}};
  }
};

// The normalisation before the convolution.
struct NormalisationBefore {
  double epsilon = 0;
  normalisation::Activation activation = {};
};

// Whether there are kernels for this convolution: in float32, depthwise with one filter a channel, a window
// of 3 x 3 and strides of 1 or 2 that lead from the image's first pixel to its last, channels in whole
// vectors. Only where vectors have 8 numbers: where they have 16 the kernels have not been compared
// with oneDNN's.
bool depthwise_is_fused(const ConvolutionGeometry& geometry);

// Of DepthwiseOfNormalisedInputs; outputs y and, of y's channels, mean and variance.
Kernel depthwise_of_normalised_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                      const NormalisationBefore& before, const Team& team);

// Of DepthwiseGradientsInputs. Outputs dz, the gradient of what the activation was given; float32 [samples,
// 2, channels], the sums of dz and of dz * (x - mean) over each sample; and the filter's gradient.
Kernel depthwise_normalised_gradients_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                             const NormalisationBefore& before, const Team& team);

}  // namespace mox
