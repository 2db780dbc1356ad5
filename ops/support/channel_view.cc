#include "ops/support/channel_view.h"

namespace mox {

int channel_axis(const Shape& shape) { return shape.rank() == 4 ? 1 : shape.rank() - 1; }

std::optional<ChannelView> channel_view(const TensorType& type, const Layout& layout) {
  const Shape& shape = type.shape;
  if (layout.is_opaque() || shape.rank() < 1) return std::nullopt;
  const int64_t channels = shape[channel_axis(shape)];
  if (shape.rank() != 4) {
    if (!layout.is_plain()) return std::nullopt;
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
    return ChannelView{rows, 1, 1, channels, channels};
  }
  const int64_t pixels = shape[2] * shape[3];
  if (layout.is_plain()) return ChannelView{shape[0], channels, pixels, 1, channels};
  int64_t width = 1;
  if (layout.blocks().size() == 1 && layout.blocks()[0].dimension == 1)
    width = layout.blocks()[0].size;
  else if (!layout.blocks().empty())
    return std::nullopt;
  else
    width = channels;
  const int64_t padded = layout.padded_extents()[1];
  const ChannelView view{shape[0], padded / width, pixels, width, channels};
  // Only this order of the axes, without a gap.
  const std::vector<int64_t> expected_strides = {view.blocks * pixels * width, pixels * width,
                                                 shape[3] * width, width};
  std::vector<int64_t> expected_extents(shape.begin(), shape.end());
  expected_extents[1] = padded;
  for (size_t i = 0; i < 4; ++i) {
    const int64_t steps = i == 1 ? view.blocks : expected_extents[i];
    if (steps > 1 && layout.strides()[i] != expected_strides[i]) return std::nullopt;
  }
  if (layout.padded_extents() != expected_extents) return std::nullopt;
  if (layout.blocks().empty() && channels > 1 && layout.strides()[1] != 1) return std::nullopt;
  return view;
}

FollowedLayout follow_layout(const TensorType& type, const Layout& layout) {
  if (const auto view = channel_view(type, layout)) return {layout, *view};
  const Layout plain = Layout::plain(type);
  return {plain, *channel_view(type, plain)};
}

}  // namespace mox
