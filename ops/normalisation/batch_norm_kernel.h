// Batch normalisation of images in blocks of channels or with channels last, with the activation and the
// addition that follow it.
//
// A block of channels is normalised from its statistics to its last pixel before the next block begins, so
// that what the second pass reads is still in a cache; a team takes blocks, or planes of them where there are
// few, or where channels lie last (batch_norm_image.h). Sums are taken plane by plane and combined in a fixed
// order: the result does not depend on the team's size.
#pragma once

#include "ops/normalisation/batch_norm_inputs.h"
#include "ops/normalisation/batch_norm_loops.h"
#include "runtime/graph/kernel.h"

namespace mox::normalisation {

struct ForwardOptions {
  double epsilon = 0;
  Activation activation = {};
  ForwardInputs<InputPosition> inputs;  // with moments the first pass is left out
};

// Outputs y, mean, variance.
Kernel forward_kernel(const KernelRequest& request, const ForwardOptions& options);

// The first pass alone, of the request's input 0; outputs mean, variance.
Kernel statistics_kernel(const KernelRequest& request);

// The same y once more, bit by bit, of StatisticsInputs; output y.
Kernel again_kernel(const KernelRequest& request, double epsilon, const Activation& activation);

struct GradientOptions {
  double epsilon = 0;
  Activation activation = {};
  MaskSource mask = MaskSource::kNone;
  FusedGradientInputs<InputPosition> inputs;  // with sums the first pass is left out
  bool has_dz = false;                        // whether output 3 is dz
};

// Outputs dx, dscale, doffset[, dz].
Kernel gradient_kernel(const KernelRequest& request, const GradientOptions& options);

}  // namespace mox::normalisation
