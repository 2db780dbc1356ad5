// Reading ahead for Winograd's convolutions (ops/processor/lanes.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/convolution/winograd/internal/tiles.h"
#include "ops/processor/lanes.h"

namespace mox::winograd {
inline namespace MOX_LANES {

using namespace lanes;

// An image as tiles.h lays it out.
template <typename Element>
struct BlockedImage {
  const Element* values;
  int64_t channels, height, width;
};

// The rows of pixels that a row of tiles reads: `side` of them every `distance`, the first `before` of them
// in front of the image.
struct TileRows {
  int64_t side, distance, before;
};

// What a range of tiles reads, brought into the core's L2 cache in shares, one for each of the problem's
// points: memory has nothing to do while the products of the tiles before them are made, and transforms would
// wait for it. How much less time convolutions take that way is in docs/design_notes.md ("Memory is read
// while products are made").
template <typename Element>
class PixelsAhead {
 public:
  // Of tiles [first, last) and below the problem's last.
  PixelsAhead(const Problem& p, const BlockedImage<Element>& image, const TileRows& rows, int64_t first,
              int64_t last)
      : image_(image), rows_(rows), rows_of_tiles_(p.tiles_y()) {
    last = std::min(last, p.tiles());
    if (first >= last) return;
    first_row_ = first / p.tiles_x();
    last_row_ = (last - 1) / p.tiles_x();
    image_index_ = first_row_ / rows_of_tiles_;
    const int64_t lines = (last_row_ - first_row_ + 1) * rows.distance * image.width *
                          (image.channels / kLanes) * kPixel / kLine;
    share_ = (lines + p.points() - 1) / p.points();
    open_plane();
  }

  // Begins to fetch the next share.
  void fetch() {
    for (int64_t i = 0; i < share_; ++i, at_ += kLine / static_cast<int64_t>(sizeof(Element))) {
      while (at_ >= end_)
        if (!next_plane()) return;
      _mm_prefetch(at_, _MM_HINT_T1);
    }
  }

 private:
  static constexpr int64_t kLine = 64, kPixel = kLanes * static_cast<int64_t>(sizeof(Element));  // bytes

  // Rows of one block of channels of one image lie side by side. Those that the row of tiles before has read
  // are left out.
  void open_plane() {
    const int64_t first = std::max(first_row_ - image_index_ * rows_of_tiles_, int64_t{0}),
                  last = std::min(last_row_ - image_index_ * rows_of_tiles_, rows_of_tiles_ - 1);
    const int64_t shared = first > 0 ? rows_.side - rows_.distance : 0;
    const int64_t top = std::clamp(first * rows_.distance - rows_.before + shared, int64_t{0}, image_.height);
    const int64_t bottom = std::clamp(last * rows_.distance - rows_.before + rows_.side, top, image_.height);
    const Element* plane = image_.values + (image_index_ * (image_.channels / kLanes) + block_) *
                                               image_.height * image_.width * kLanes;
    at_ = plane + top * image_.width * kLanes;
    end_ = plane + bottom * image_.width * kLanes;
  }

  bool next_plane() {
    if (++block_ == image_.channels / kLanes) {
      block_ = 0;
      ++image_index_;
    }
    if (image_index_ * rows_of_tiles_ > last_row_) {
      share_ = 0;
      return false;
    }
    open_plane();
    return true;
  }

  BlockedImage<Element> image_;
  TileRows rows_;
  int64_t rows_of_tiles_;                  // of an image
  int64_t first_row_ = 0, last_row_ = -1;  // of tiles, counted through the batch
  int64_t image_index_ = 0, block_ = 0;
  int64_t share_ = 0;
  const Element *at_ = nullptr, *end_ = nullptr;
};

}  // namespace MOX_LANES
}  // namespace mox::winograd
