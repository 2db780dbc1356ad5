// MixUp: training on mixtures of two samples and of their labels (Zhang et al., "mixup: Beyond Empirical Risk
// Minimization", arXiv:1710.09412).
#pragma once

#include <cstdint>

#include "runtime/base/source_location.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/dtype.h"

namespace mox::data {

struct MixUpOptions {
  // The share of the first sample, one for each batch, is drawn from Beta(alpha, alpha): near 0 or 1 for a
  // small alpha, uniform for 1. In (0, 1].
  double alpha = 0.2;
  int64_t num_classes = 0;  // >= 2, required
  // Of the mixtures: kFloat32, or kBFloat16: the same numbers rounded to nearest even, once; so the images
  // that are mixed are float32.
  DType dtype = DType::kFloat32;
};

// `batches`: elements {images, labels}, float32 [batch, ...] and int32 [batch]. The result has {images,
// labels}, options.dtype [batch, ...] and float32 [batch, num_classes]: each sample mixed with another one of
// its batch, and the shares of both classes. What is drawn depends on the seed, the epoch and the batch's
// first sample alone. Train on it with softmax_cross_entropy, which takes label_smoothing as well. Throws
// InvalidArgument for batches of other types or options out of range; running throws DataError for a label
// outside of [0, num_classes).
Dataset mix_up(const Dataset& batches, const MixUpOptions& options,
               SourceLocation where = SourceLocation::current());

}  // namespace mox::data
