// An image as batch normalisation goes through it: groups of pixels, and of each the blocks of 8 or 16 channels, one plane each.
//
// In blocks of channels a group is a sample, and a plane lies in one piece. With channels last a group is a number of pixels that a
// core's own caches hold, and a plane is a part of each of them: a block of bfloat16 channels is half a cache line, so a thread
// takes all planes of a group one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/team.h"
#include "runtime/graph/layout.h"

namespace mox::normalisation {

constexpr int64_t kWidest = 16;

// The layout in which an image that exists in `offered` is normalised: itself if it has blocks of 8 or 16 channels, or has channels
// last and they are whole blocks of 16; else blocks of 16.
Layout normalised_layout(const TensorType& image, const Layout& offered);

struct Image {
  // `layout`: as normalised_layout gives it.
  Image(const TensorType& type, const Layout& layout);

  int64_t groups, pixels;  // of a group
  int64_t blocks, width;   // of a block
  int64_t channels;        // <= blocks * width; the rest is padding
  int64_t distance;        // of a pixel from the one before it, in elements
  bool is_spaced() const { return distance > width; }

  int64_t padded_channels() const { return blocks * width; }
  int64_t channels_in(int64_t block) const;
  int64_t values() const { return groups * pixels; }  // of a channel
  int64_t plane_elements() const { return pixels * width; }
  int64_t offset(int64_t group, int64_t block) const {
    return group * blocks * plane_elements() + block * (is_spaced() ? width : plane_elements());
  }
  // Whether threads take groups, as in convolutions, and not blocks of channels.
  bool goes_by_groups() const;

  // Two numbers a channel of each plane, at the beginning of scratch memory.
  size_t partial_bytes() const { return static_cast<size_t>(2 * groups * padded_channels()) * sizeof(float); }
  float* partial(std::byte* scratch, int64_t group, int64_t block) const {
    return reinterpret_cast<float*>(scratch) + 2 * (block * groups + group) * width;
  }
};

// combine(block) for all blocks, then second(group, block) for all planes, beginning with those that were made last.
template <typename Combine, typename Second>
void run_second_passes(const Image& image, const Team& team, Combine combine, Second second) {
  const int64_t blocks = image.blocks;
  team.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) combine(block);
  });
  team.parallel_for_backwards(blocks * image.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = end; i-- > begin;) second(i / blocks, i % blocks);
  });
}

// first(group, block) for all planes, then combine(block) for their block, then second(group, block).
template <typename First, typename Combine, typename Second>
void run_passes(const Image& image, const Team& team, First first, Combine combine, Second second) {
  const int64_t blocks = image.blocks, groups = image.groups;
  if (!image.goes_by_groups() && (blocks % team.size() == 0 || blocks >= 8 * team.size())) {
    team.parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t group = 0; group < groups; ++group) first(group, block);
        combine(block);
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
