// Layouts seen as [outer][blocks][inner][width] (ops/support/channel_view.h).
#include "ops/support/channel_view.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ops/support/axis_view.h"
#include "tests/ops/kernel_testing.h"

namespace mox::test {
namespace {

Layout channels_last(const TensorType& type) {
  const Shape& s = type.shape;
  return Layout::blocked(type, {s[0], s[1], s[2], s[3]}, {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]}, {});
}
Layout blocked_by_eight(const TensorType& type) {
  const Shape& s = type.shape;
  const int64_t blocks = (s[1] + 7) / 8, pixels = s[2] * s[3];
  return Layout::blocked(type, {s[0], blocks * 8, s[2], s[3]}, {blocks * 8 * pixels, pixels * 8, s[3] * 8, 8},
                         {{1, 8}});
}

// An array whose elements are the numbers of their channels, from 1; 0 is what pads.
Array numbered_channels(const Shape& shape) {
  Array array(DType::kFloat32, shape);
  const internal::AxisView view = internal::axis_view(shape, channel_axis(shape));
  for (int64_t i = 0; i < array.elements(); ++i)
    array.values<float>()[i] = static_cast<float>(i / view.inner % view.extent + 1);
  return array;
}

void expect_channels_where_the_view_says(const TensorType& type, const Layout& layout) {
  SCOPED_TRACE(layout.to_string());
  const std::optional<ChannelView> view = channel_view(type, layout);
  ASSERT_TRUE(view);
  ASSERT_EQ(view->elements() * sizeof(float), layout.bytes());
  EXPECT_EQ(view->channels, type.shape[channel_axis(type.shape)]);
  const Array array = numbered_channels(type.shape);
  const auto plain = poisoned(array.bytes());
  std::memcpy(plain.get(), array.data(), array.bytes());
  const auto memory = converted(type, Layout::plain(type), layout, plain, Team(1));
  const float* value = reinterpret_cast<const float*>(memory.get());
  for (int64_t o = 0; o < view->outer; ++o)
    for (int64_t b = 0; b < view->blocks; ++b)
      for (int64_t i = 0; i < view->inner; ++i)
        for (int64_t w = 0; w < view->width; ++w, ++value) {
          const int64_t channel = b * view->width + w;
          ASSERT_EQ(*value, channel < view->channels ? static_cast<float>(channel + 1) : 0) << channel;
        }
}

TEST(ChannelView, HasEveryElementInItsChannel) {
  for (const int64_t channels : {1, 5, 8, 24}) {
    const TensorType image{DType::kFloat32, {2, channels, 3, 4}};
    for (const Layout& layout : {Layout::plain(image), channels_last(image), blocked_by_eight(image)})
      expect_channels_where_the_view_says(image, layout);
    const TensorType matrix{DType::kFloat32, {6, channels}};
    expect_channels_where_the_view_says(matrix, Layout::plain(matrix));
  }
}

TEST(ChannelView, OfOtherLayoutsIsNoneAndTheyAreNotFollowed) {
  const TensorType image{DType::kFloat32, {2, 8, 3, 4}};
  const Layout rows_last = Layout::blocked(image, {2, 8, 3, 4}, {96, 12, 1, 3}, {});
  const Layout opaque = Layout::opaque(768, "of somebody", nullptr);
  for (const Layout& layout : {rows_last, opaque}) {
    EXPECT_FALSE(channel_view(image, layout)) << layout.to_string();
    EXPECT_TRUE(follow_layout(image, layout).layout.is_plain());
  }
  EXPECT_EQ(follow_layout(image, channels_last(image)).layout, channels_last(image));
}

}  // namespace
}  // namespace mox::test
