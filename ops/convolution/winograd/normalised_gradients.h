// Gradients of a convolution between two batch normalisations, a few images at a time, so that what one
// computation makes the next finds in the core's cache: the gradient of the normalisation behind the
// convolution never goes through memory, and the image in front of it is read once for both of the
// convolution's gradients, or not at all.
//
// Of dz, the gradient of what the normalisation behind gave, and sums over dz (ReluGradientInputs), per
// image:
//   dy = (dz - mean(dz) - (y - mean) * slope) * factor        Ioffe & Szegedy, "Batch Normalization", 2015
//   filter gradient += dy (*) image,  image gradient = w (*) dy
// and on through the relu and normalisation in front,
// by Winograd's method (winograd_tiles.h).
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "runtime/graph/kernel.h"

namespace mox {

// Positions of the node's inputs; w and what else belongs to the convolution and the normalisation behind it
// always lie first.
struct NormalisedGradientInputs {
  enum : int {
    kFilter,
    kDz,
    kSums,
    kY,
    kScale,
    kMean,
    kVariance,
    kX,
    kScaleBefore,
    kOffsetBefore,
    kMeanBefore,
    kVarianceBefore,
    kOptional
  };
  double epsilon = 0, epsilon_before = 0;
  int more = -1;   // a gradient to be added to that of the image
  int image = -1;  // of the convolution; if none, it is relu of the normalised x
};

// Where winograd_image_groups.h finds groups. Outputs dz of the normalisation before, its sums in as many
// groups as the node's type says, the filter's gradient, and those of scale and offset.
Kernel winograd_normalised_gradients_kernel(const Node& node, const ConvolutionGeometry& geometry,
                                            const NormalisedGradientInputs& inputs, const Team& team);

}  // namespace mox
