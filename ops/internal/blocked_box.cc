#include "ops/internal/blocked_box.h"

#include <algorithm>

#include "ops/internal/channel_view.h"

namespace mox::internal {
namespace {

// As the memory lies: [batch][channels / width][height][width of the image][width].
Shape memory_shape(const Shape& image, int64_t width) {
  return {image[0], image[1] / width, image[2], image[3], width};
}

std::vector<int64_t> memory_place(const std::vector<int64_t>& begin, int64_t channel, int64_t width) {
  return {begin[0], (begin[1] + channel) / width, begin[2], begin[3], (begin[1] + channel) % width};
}

Layout layout_like(const TensorType& image, int64_t width) {
  const Shape& s = image.shape;
  const int64_t pixels = s[2] * s[3];
  return Layout::blocked(image, {s[0], s[1], s[2], s[3]},
                         {s[1] * pixels, pixels * width, s[3] * width, width}, {{1, width}});
}

}  // namespace

std::optional<BlockedBox> blocked_box(const std::vector<int64_t>& extents, const TensorType& source,
                                      const Layout& layout, const std::vector<int64_t>& source_begin,
                                      const TensorType& target, const std::vector<int64_t>& target_begin) {
  const auto view = channel_view(source, layout);
  if (!view || layout.blocks().empty() || target.shape.elements() == 0) return std::nullopt;
  const int64_t width = view->width;
  if (source.shape[1] % width != 0 || target.shape[1] % width != 0) return std::nullopt;
  BlockedBox box{layout, layout_like(target, width), {}};
  // Runs of channels that lie in one block on both sides, or are whole blocks on both.
  for (int64_t channel = 0; channel < extents[1];) {
    const int64_t from = (source_begin[1] + channel) % width, to = (target_begin[1] + channel) % width,
                  left = extents[1] - channel;
    const int64_t blocks = from == 0 && to == 0 ? std::max<int64_t>(1, left / width) : 1;
    const int64_t run = std::min({width - from, width - to, left});
    box.copies.emplace_back(std::vector<int64_t>{extents[0], blocks, extents[2], extents[3], run},
                            memory_shape(source.shape, width), memory_place(source_begin, channel, width),
                            memory_shape(target.shape, width), memory_place(target_begin, channel, width),
                            size_of(source.dtype));
    channel += blocks * run;
  }
  return box;
}

}  // namespace mox::internal
