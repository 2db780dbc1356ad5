// An image as batch normalisation goes through it: planes of pixels, with channels that lie side
// by side in each.
//
// In blocks of channels there is a plane for each sample and block. With channels last there is one for each
// group of pixels, with all channels. A matrix [batch,
// channels] is an image of one pixel with channels last.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/team.h"
#include "runtime/graph/layout.h"

namespace mox::normalisation {

// The layout in which an image that exists in `offered` is normalised: itself if it has blocks of 8 or 16
// channels, or has channels last and they are a multiple of 8; else blocks of 16. A matrix is
// normalised as it is.
Layout normalised_layout(const TensorType& image, const Layout& offered);

struct Image {
  // `layout`: as normalised_layout gives it.
  Image(const TensorType& type, const Layout& layout);

  int64_t groups, blocks;  // of each group and block one plane, in this order in memory
  int64_t pixels, width;   // of a plane: [pixels][width]
  int64_t channels;        // <= blocks * width; the rest is padding
  bool is_channels_last;   // one block of all channels

  int64_t padded_channels() const { return blocks * width; }
  int64_t values() const { return groups * pixels; }  // of a channel
  int64_t plane_elements() const { return pixels * width; }
  int64_t offset(int64_t group, int64_t block) const { return (group * blocks + block) * plane_elements(); }
  // Whether threads take groups, as in convolutions, and not blocks of channels.
  bool goes_by_groups() const;

  // Up to three numbers a channel of each plane, [3][width], at the beginning of scratch memory.
  size_t partial_bytes() const { return (3 * groups * padded_channels()) * sizeof(float); }
  float* partial(std::byte* scratch, int64_t group, int64_t block) const {
    return reinterpret_cast<float*>(scratch) + 3 * (block * groups + group) * width;
  }
};

// Channels whose sums are combined together: a block, or as many as its widest of a block of all channels.
struct Slice {
  static constexpr int64_t kWidest = 16;
  static int64_t count(const Image& image);
  Slice(const Image& image, int64_t index);

  int64_t block, first;     // channel in the block
  int64_t channel;          // the first one's in the image
  int64_t width, channels;  // with padding and without
};

// combine(slice) for all slices, then second(group, block) for all planes, beginning with those that were
// made last.
template <typename Combine, typename Second>
void run_second_passes(const Image& image, const Team& team, Combine combine, Second second) {
  const int64_t blocks = image.blocks;
  team.parallel_for(Slice::count(image), 1, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) combine(Slice(image, slice));
  });
  team.parallel_for_backwards(blocks * image.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = end; i-- > begin;) second(i / blocks, i % blocks);
  });
}

// first(group, block) for all planes, then combine(slice) of their channels, then second(group, block).
template <typename First, typename Combine, typename Second>
void run_passes(const Image& image, const Team& team, First first, Combine combine, Second second) {
  const int64_t blocks = image.blocks, groups = image.groups;
  if (!image.goes_by_groups() && (blocks % team.size() == 0 || blocks >= 8 * team.size())) {
    team.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t group = 0; group < groups; ++group) first(group, block);
        combine(Slice(image, block));
        // The last planes are those that are still in the cache.
        for (int64_t group = groups; group-- > 0;) second(group, block);
      }
    });
    return;
  }
  team.parallel_for(blocks * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) first(i / blocks, i % blocks);
  });
  run_second_passes(image, team, combine, second);
}

}  // namespace mox::normalisation
