// Batch normalisation of tensors of any rank: what its kernels take is an image or a row of channels, and
// what is behind the channels may as well be one axis.
#pragma once

#include "ops/shape/shape.h"

namespace mox::normalisation {

// x as [batch, channels, pixels, 1] if it is [batch, channels, a, ...] of another rank than 4; else x, which
// the op refuses if it has no channels.
inline Tensor as_image(const Tensor& x, SourceLocation where) {
  if (!x.defined() || x.shape().rank() < 3 || x.shape().rank() == 4) return x;
  int64_t pixels = 1;
  for (int axis = 2; axis < x.shape().rank(); ++axis) pixels *= x.shape()[axis];
  return reshape(x, {x.shape()[0], x.shape()[1], pixels, 1}, where);
}

// `image`, made of as_image(x), in the shape of x again.
inline Tensor in_shape_of(const Tensor& x, const Tensor& image, SourceLocation where) {
  return image.shape() == x.shape() ? image : reshape(image, {x.shape().begin(), x.shape().end()}, where);
}

}  // namespace mox::normalisation
