// The conversion of last resort, against the place that the layout gives every element.
#include "ops/fusion/internal/element_conversion.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ops/fusion/internal/padded_reorder.h"

namespace mox {
namespace {

// [20, 5, 3, 2] in blocks of 8 outputs by 4 inputs: both end within a block.
Layout blocked(DType dtype) {
  return Layout::blocked({dtype, {20, 5, 3, 2}}, {24, 8, 3, 2}, {384, 192, 64, 32}, {{1, 4}, {0, 8}});
}

size_t place(size_t out, size_t in, size_t y, size_t x) {
  return (out / 8) * 384 + (in / 4) * 192 + y * 64 + x * 32 + (in % 4) * 8 + out % 8;
}

std::vector<std::byte> converted(const Kernel& kernel, const std::vector<std::byte>& from) {
  const Team team(3);
  std::vector<std::byte> to(kernel.output_layouts[0].bytes(), std::byte{0x5a});
  const std::byte* source = from.data();
  std::byte* target = to.data();
  kernel.instantiate()({std::span(&source, 1), std::span(&target, 1), nullptr, team, 0, 0});
  return to;
}

TEST(ElementConversion, PutsBitsOfEverySizeInTheirPlaces) {
  for (const DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kInt64}) {
    const TensorType type{dtype, {20, 5, 3, 2}};
    const size_t size = size_of(dtype);
    std::vector<std::byte> plain(type.bytes());
    for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i * 167 + i / 251);
    std::vector<std::byte> expected(24 * 8 * 3 * 2 * size, std::byte{0});
    const std::byte* from = plain.data();
    for (size_t out = 0; out < 20; ++out)
      for (size_t in = 0; in < 5; ++in)
        for (size_t y = 0; y < 3; ++y)
          for (size_t x = 0; x < 2; ++x, from += size)
            std::memcpy(expected.data() + place(out, in, y, x) * size, from, size);
    const Layout layout = blocked(dtype);
    EXPECT_TRUE(converted(element_conversion_kernel(type, Layout::plain(type), layout), plain) == expected)
        << to_string(type);
    EXPECT_TRUE(converted(element_conversion_kernel(type, layout, Layout::plain(type)), expected) == plain)
        << to_string(type);
  }
}

TEST(ElementConversion, IsNotNeededWithoutPadding) {
  const TensorType type{DType::kFloat32, {16, 8, 3, 3}};
  EXPECT_TRUE(reorders_into_padding(Layout::plain(type)));
  EXPECT_TRUE(
      reorders_into_padding(Layout::blocked(type, {16, 8, 3, 3}, {576, 576, 192, 64}, {{1, 8}, {0, 8}})));
}

}  // namespace
}  // namespace mox
