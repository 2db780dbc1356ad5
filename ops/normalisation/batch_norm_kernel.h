// Batch normalisation of images in blocks of channels or with channels last, with the activation and the
// addition that follow it.
//
// A block of channels is normalised from its statistics to its last pixel before the next block begins, so
// that what the second pass reads is still in a cache; a team takes blocks, or planes of them where there are
// few, or where channels lie last (batch_norm_image.h). Sums are taken plane by plane and combined in a fixed
// order: the result does not depend on the team's size.
#pragma once

#include "ops/normalisation/batch_norm_loops.h"
#include "runtime/graph/kernel.h"

namespace mox::normalisation {

struct ForwardOptions {
  double epsilon = 0;
  Activation activation = {};
  // Positions of the inputs beside x (0), scale (1) and offset (2); -1: none.
  int residual = -1;  // of x's type
  int moments =
      -1;  // float32 [groups, 3, channels], as conv2d_moments gives them: then the first pass is left out
};

// Outputs y, mean, variance.
Kernel forward_kernel(const KernelRequest& request, const ForwardOptions& options);

// The same y once more, bit by bit: inputs x, scale, offset, mean, variance; output y.
Kernel again_kernel(const KernelRequest& request, double epsilon, const Activation& activation);

struct BackwardOptions {
  double epsilon = 0;
  Activation activation = {};
  MaskSource mask = MaskSource::kNone;
  // Positions of the inputs beside x (0), scale (1), offset, mean and variance; -1: none.
  int offset = -1, mean = -1, variance = -1, dy = -1, dy_more = -1, y = -1;
  // float32 [groups, 2, channels], the sums of dy and of dy * (x - mean) over groups of pixels: then the
  // first pass is left out
  int sums = -1;
  bool has_dz = false;  // whether output 3 is dz
};

// Outputs dx, dscale, doffset[, dz].
Kernel backward_kernel(const KernelRequest& request, const BackwardOptions& options);

}  // namespace mox::normalisation
