// The loops of max_pool and its gradients, over images in any layout that has a channel view.
//
// Own loops rather than oneDNN's, which lose NaN: a window of NaNs gives the smallest number there, relu
// makes zero of it, and a training run that has diverged looks sound.
//
// The winner of a window is the position of its largest element among the pixels of the window that lie
// inside of the image, row by row: 0 for the first. Where channels are padded, it is 0.
#pragma once

#include "ops/convolution/geometry/window.h"
#include "ops/support/channel_view.h"
#include "runtime/base/team.h"

namespace mox {

struct MaxPooling {
  ChannelView image;        // of x
  WindowGeometry geometry;  // rows, columns
  int64_t pooled_pixels() const { return geometry[0].output * geometry[1].output; }
};

// `layout` and its view, if it has one that layout_in knows, else the plain layout and its view.
FollowedLayout follow_image(const TensorType& type, const Layout& layout);
// The layout of an image with as many channels, through which the loops go alike. (An image of 1 x 1 lies
// alike in all layouts: that it has the same one tells nothing of how they go.)
Layout layout_in(const TensorType& image, const FollowedLayout& followed);

// `Element` is float or BFloat16, `Winner` uint8_t, or int32_t where a window has more than 256 pixels.
// `winner` may be null.
template <typename Element, typename Winner>
void max_pool_forward(const MaxPooling& pooling, const Element* x, Element* y, Winner* winner,
                      const Team& team);
// dx = dy at each window's winner, summed in float32 in the windows' order; 0 elsewhere.
template <typename Element, typename Winner>
void max_pool_scatter(const MaxPooling& pooling, const Element* dy, const Winner* winner, Element* dx,
                      const Team& team);
// y = x at each window's winner.
template <typename Winner>
void max_pool_gather(const MaxPooling& pooling, const float* x, const Winner* winner, float* y,
                     const Team& team);

}  // namespace mox
