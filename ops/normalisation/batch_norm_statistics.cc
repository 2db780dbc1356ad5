#include "ops/normalisation/batch_norm_statistics.h"

namespace mox::normalisation {

void combine_statistics(const Image& image, std::byte* scratch, const Slice& slice, float* mean,
                        float* variance) {
  const double pixels = image.pixels, groups = image.groups;
  const int64_t width = slice.width, row = image.width;
  double means[Slice::kWidest] = {}, squares[Slice::kWidest] = {};
  for (int64_t group = 0; group < image.groups; ++group) {
    const float* partial = image.partial(scratch, group, slice.block) + slice.first;
    for (int64_t c = 0; c < width; ++c) means[c] += static_cast<double>(partial[c]) + partial[row + c];
  }
  for (double& m : means) m /= groups;
  for (int64_t group = 0; group < image.groups; ++group) {
    const float* partial = image.partial(scratch, group, slice.block) + slice.first;
    for (int64_t c = 0; c < width; ++c) {
      const double distance = partial[c] - means[c] + partial[row + c];
      squares[c] += partial[2 * row + c] + pixels * distance * distance;
    }
  }
  for (int64_t c = 0; c < slice.channels; ++c) {
    mean[slice.channel + c] = means[c];
    variance[slice.channel + c] = squares[c] / image.values();
  }
}

void combine_moments(const float* moments, int64_t groups, int64_t row, int64_t first, int64_t channels,
                     float* mean, float* variance) {
  double pixels = 0, means[Slice::kWidest] = {}, squares[Slice::kWidest] = {};
  for (int64_t group = 0; group < groups; ++group) {
    const float* at = moments + 3 * group * row + first;
    pixels += at[0];
    for (int64_t c = 0; c < channels; ++c) means[c] += static_cast<double>(at[c]) * at[row + c];
  }
  for (double& m : means) m /= pixels;
  for (int64_t group = 0; group < groups; ++group) {
    const float* at = moments + 3 * group * row + first;
    for (int64_t c = 0; c < channels; ++c) {
      const double distance = at[row + c] - means[c];
      squares[c] += at[2 * row + c] + at[c] * distance * distance;
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean[first + c] = means[c];
    variance[first + c] = squares[c] / pixels;
  }
}

}  // namespace mox::normalisation
