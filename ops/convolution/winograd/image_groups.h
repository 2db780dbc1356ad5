// A few images of a convolution at a time, small enough that all that is computed of them finds them in a
// core's cache.
#pragma once

#include "ops/convolution/geometry/convolution_geometry.h"
#include "ops/convolution/winograd/internal/tiles.h"

namespace mox::winograd {

// How many images are worked on together, and how many of their tiles.
struct ImageGroups {
  static constexpr int64_t kMostChannels = 32;  // so that filter, sums and tiles stay in an L2 cache of 1 MiB

  int64_t images = 0, chunk = 0;

  bool exist() const { return images > 0; }
  int64_t count(const Problem& p) const { return (p.batch + images - 1) / images; }
  // Images of one group: the last may have fewer.
  int64_t images_of(const Problem& p, int64_t group) const;
  // Chunks of a whole group, and of all of them.
  int64_t chunks(const Problem& p) const { return chunks_of(p, images); }
  int64_t all_chunks(const Problem& p) const;

 private:
  int64_t chunks_of(const Problem& p, int64_t some_images) const;
};

// None with strides, where the image and the result are not of the same size, in bfloat16, with more than
// kMostChannels channels, of images too large for the cache or with so few tiles that cutting them evenly
// would waste much, and where Winograd's method does not pay (winograd.h).
ImageGroups image_groups_of(const ConvolutionGeometry& geometry);

}  // namespace mox::winograd
