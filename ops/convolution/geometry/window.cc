#include "ops/convolution/geometry/window.h"

#include <fmt/format.h>

#include <algorithm>

namespace mox {
namespace {

// Far beyond any image, and small enough that the arithmetic below cannot overflow.
constexpr int64_t kLargest = int64_t{1} << 30;

}  // namespace

Attributes window_attributes(const std::array<int64_t, 2>& strides, const std::array<int64_t, 2>& dilations,
                             const Padding& padding) {
  using List = std::vector<int64_t>;
  return {{"strides", List(strides.begin(), strides.end())},
          {"dilations", List(dilations.begin(), dilations.end())},
          {"padding", std::string(padding.name())},
          {"padding_sizes", List(padding.sizes().begin(), padding.sizes().end())}};
}

Padding padding_of(const Attributes& attributes) {
  const auto& name = attributes.get<std::string>("padding");
  if (name == Padding::kSame.name()) return Padding::kSame;
  if (name == Padding::kValid.name()) return Padding::kValid;
  const auto& sizes = attributes.get<std::vector<int64_t>>("padding_sizes");
  return Padding::of(sizes[0], sizes[1], sizes[2], sizes[3]);
}

WindowGeometry resolve_window(const Attributes& attributes, std::array<int64_t, 2> input,
                              std::array<int64_t, 2> size) {
  const auto& strides = attributes.get<std::vector<int64_t>>("strides");
  const auto& dilations = attributes.get<std::vector<int64_t>>("dilations");
  const auto& padding = attributes.get<std::string>("padding");
  const auto& sizes = attributes.get<std::vector<int64_t>>("padding_sizes");
  WindowGeometry geometry;
  for (size_t i = 0; i < 2; ++i) {
    WindowAxis& axis = geometry[i];
    axis = {.input = input[i], .size = size[i], .stride = strides[i], .dilation = dilations[i]};
    const int64_t extent = (axis.size - 1) * axis.dilation + 1;
    if (padding == Padding::kSame.name()) {
      axis.output = (axis.input + axis.stride - 1) / axis.stride;
      const int64_t total = std::max<int64_t>((axis.output - 1) * axis.stride + extent - axis.input, 0);
      axis.before = total / 2;
      axis.after = total - axis.before;
      continue;
    }
    axis.before = sizes[2 * i];
    axis.after = sizes[2 * i + 1];
    axis.output = (axis.input + axis.before + axis.after - extent) / axis.stride + 1;
  }
  return geometry;
}

WindowGeometry check_window(const OpCall& call, std::array<int64_t, 2> input, std::array<int64_t, 2> size) {
  auto in_range = [&](const std::vector<int64_t>& values, int64_t least) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least && v <= kLargest; });
  };
  call.require(in_range(call.attributes.get<std::vector<int64_t>>("strides"), 1),
               "strides of at least 1 and at most 2^30");
  call.require(in_range(call.attributes.get<std::vector<int64_t>>("dilations"), 1),
               "dilations of at least 1 and at most 2^30");
  call.require(in_range(call.attributes.get<std::vector<int64_t>>("padding_sizes"), 0),
               "padding sizes of at least 0 and at most 2^30");
  call.require(in_range({size.begin(), size.end()}, 1), "a window of at least 1 x 1 and at most 2^30 a side");
  call.require(in_range({input.begin(), input.end()}, 0), "an image of at most 2^30 pixels a side");
  const WindowGeometry geometry = resolve_window(call.attributes, input, size);
  for (const WindowAxis& axis : geometry) {
    const int64_t extent = (axis.size - 1) * axis.dilation + 1,
                  padded = axis.input + axis.before + axis.after;
    if (axis.input > 0 && extent > padded)
      call.fail(fmt::format("a window that fits into the padded image, but it spans {} of {} pixels", extent,
                            padded));
    if (axis.input == 0 && axis.output > 0) call.fail("an image of at least one pixel");
    if (axis.output < 0)
      call.fail(fmt::format("a window that fits into the padded image, but it spans {} of {} pixels", extent,
                            padded));
  }
  return geometry;
}

TensorType forward_image_type(const Attributes& attributes) {
  return {DType::kFloat32, Shape(attributes.get<std::vector<int64_t>>("x_shape"))};
}

}  // namespace mox
