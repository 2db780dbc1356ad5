// Layouts in which a loop over channels is simple: memory as [outer][blocks][inner][width], where element (o,
// b, i, w) belongs to channel b * width + w.
//
//   plain image:   [batch][channels][pixels][1]        channels last:  [batch][1][pixels][channels]
//   nChw16c:       [batch][channels / 16][pixels][16]  a matrix:       [rows][1][1][columns]
#pragma once

#include <optional>

#include "runtime/graph/layout.h"

namespace mox {

struct ChannelView {
  int64_t outer, blocks, inner, width;
  int64_t channels;  // <= blocks * width; the rest is padding
  int64_t padded_channels() const { return blocks * width; }
  int64_t elements() const { return outer * blocks * inner * width; }
};

// The axis of channels: 1 of an image (rank 4), the last of everything else.
int channel_axis(const Shape& shape);

// Nothing if `layout` is not one of these.
std::optional<ChannelView> channel_view(const TensorType& type, const Layout& layout);

// `layout` and its view if it has one, else the plain layout and its view: for kernels that keep the layout
// of an input.
struct FollowedLayout {
  Layout layout;
  ChannelView view;
};
FollowedLayout follow_layout(const TensorType& type, const Layout& layout);

}  // namespace mox
