#include "ops/convolution/winograd/image_groups.h"

#include <algorithm>
#include <limits>

#include "ops/convolution/winograd/problem.h"
#include "ops/convolution/winograd/winograd.h"

namespace mox::winograd {
namespace {

// Of the images of a group: six of them are in use or on their way.
constexpr int64_t kMostFloats = 32 * 1024;
constexpr int64_t kMostImages = 8;    // of a group
constexpr double kMostWaste = 1.125;  // tiles that are worked on, for each that is there

// The cut that wastes least; of those the one with fewest images.
ImageGroups cut(const Problem& p) {
  const int64_t floats = p.in_channels * p.in_height * p.in_width;
  ImageGroups best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t images = 1; images <= std::min({kMostImages, p.batch, kMostFloats / floats}); ++images)
    for (const int64_t chunk : {36, 32, 24}) {
      const ImageGroups groups{images, chunk};
      const double waste =
          static_cast<double>(groups.chunks(p) * chunk) / (images * p.tiles_y() * p.tiles_x());
      if (waste >= least) continue;
      least = waste;
      best = groups;
    }
  return least <= kMostWaste ? best : ImageGroups();
}

}  // namespace

int64_t ImageGroups::images_of(const Problem& p, int64_t group) const {
  return std::min(images, p.batch - group * images);
}
int64_t ImageGroups::chunks_of(const Problem& p, int64_t some_images) const {
  return (some_images * p.tiles_y() * p.tiles_x() + chunk - 1) / chunk;
}
int64_t ImageGroups::all_chunks(const Problem& p) const {
  const int64_t last = count(p) - 1;
  return last * chunks(p) + chunks_of(p, images_of(p, last));
}

ImageGroups image_groups_of(const ConvolutionGeometry& g) {
  if (g.x.dtype != DType::kFloat32 || g.x.shape != g.y.shape || g.x.shape[1] > ImageGroups::kMostChannels ||
      g.w.shape[2] != 3 || g.window[0].stride != 1 || !winograd_pays(g))
    return {};
  return cut(forward_problem(g));
}

}  // namespace mox::winograd
