// Mean and variance of the channels of an image from those of its parts.
//
// Parts are combined in a fixed order as in Chan, Golub & LeVeque, "Updating Formulae and a Pairwise
// Algorithm for Computing Sample Variances" (1979): nothing cancels where the mean is large
// beside the deviation.
#pragma once

#include "ops/normalisation/internal/batch_norm_image.h"

namespace mox::normalisation {

// Those of a slice from what Loops::statistics gave of the planes, which lies in scratch memory.
void combine_statistics(const Image& image, std::byte* scratch, const Slice& slice, float* mean,
                        float* variance);

// The same of `channels` channels from `first` on, no more than Slice::kWidest, from the moments of groups of
// pixels, [groups][3][row], as conv2d_moments gives them.
void combine_moments(const float* moments, int64_t groups, int64_t row, int64_t first, int64_t channels,
                     float* mean, float* variance);

}  // namespace mox::normalisation
