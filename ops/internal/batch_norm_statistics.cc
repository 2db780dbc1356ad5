#include "ops/internal/batch_norm_statistics.h"

namespace mox::normalisation {

void combine_statistics(const Image& image, std::byte* scratch, int64_t block, float* mean, float* variance) {
  const auto pixels = static_cast<double>(image.pixels), groups = static_cast<double>(image.groups);
  const int64_t width = image.width, first = block * width, channels = image.channels_in(block);
  double means[kWidest] = {}, squares[kWidest] = {};
  for (int64_t group = 0; group < image.groups; ++group) {
    const float* partial = image.partial(scratch, group, block);
    for (int64_t c = 0; c < width; ++c) means[c] += partial[c];
  }
  for (double& m : means) m /= groups;
  for (int64_t group = 0; group < image.groups; ++group) {
    const float* partial = image.partial(scratch, group, block);
    for (int64_t c = 0; c < width; ++c) {
      const double distance = partial[c] - means[c];
      squares[c] += partial[width + c] + pixels * distance * distance;
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean[first + c] = static_cast<float>(means[c]);
    variance[first + c] = static_cast<float>(squares[c] / static_cast<double>(image.values()));
  }
}

void combine_moments(const Image& image, const float* moments, int64_t groups, int64_t block, float* mean,
                     float* variance) {
  const int64_t row = image.channels, first = block * image.width, channels = image.channels_in(block);
  const auto values = static_cast<double>(image.values());
  double means[kWidest] = {}, squares[kWidest] = {};
  for (int64_t group = 0; group < groups; ++group) {
    const float* at = moments + 3 * group * row + first;
    for (int64_t c = 0; c < channels; ++c) means[c] += static_cast<double>(at[c]) * at[row + c];
  }
  for (double& m : means) m /= values;
  for (int64_t group = 0; group < groups; ++group) {
    const float* at = moments + 3 * group * row + first;
    for (int64_t c = 0; c < channels; ++c) {
      const double distance = at[row + c] - means[c];
      squares[c] += at[2 * row + c] + at[c] * distance * distance;
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean[first + c] = static_cast<float>(means[c]);
    variance[first + c] = static_cast<float>(squares[c] / values);
  }
}

}  // namespace mox::normalisation
