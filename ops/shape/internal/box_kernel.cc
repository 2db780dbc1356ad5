#include "ops/shape/internal/box_kernel.h"

#include <algorithm>

#include "ops/processor/onednn.h"
#include "ops/shape/internal/box_copy.h"
#include "ops/support/channel_view.h"

namespace mox::internal {
namespace {

// How many channels a block has, of which both images have whole ones; 0 where the box is copied between
// plain layouts.
int64_t common_block(const TensorType& source, const Layout& layout, const TensorType& target) {
  const auto view = channel_view(source, layout);
  if (!view || layout.blocks().empty() || target.shape.elements() == 0) return 0;
  const bool fill_blocks = source.shape[1] % view->width == 0 && target.shape[1] % view->width == 0;
  return fill_blocks ? view->width : 0;
}

// As the memory lies: [batch][channels / width][height][width of the image][width].
Shape memory_shape(const Shape& image, int64_t width) {
  return {image[0], image[1] / width, image[2], image[3], width};
}
std::vector<int64_t> memory_place(const std::vector<int64_t>& begin, int64_t channel, int64_t width) {
  return {begin[0], (begin[1] + channel) / width, begin[2], begin[3], (begin[1] + channel) % width};
}

// Of runs of channels that lie in one block on both sides, or are whole blocks on both.
std::vector<BoxCopy> copies_of_blocks(const TensorType& source, const TensorType& target, const Box& box,
                                      int64_t width) {
  std::vector<BoxCopy> copies;
  for (int64_t channel = 0; channel < box.extents[1];) {
    const int64_t from = (box.source_begin[1] + channel) % width,
                  to = (box.target_begin[1] + channel) % width, left = box.extents[1] - channel;
    const int64_t blocks = from == 0 && to == 0 ? std::max<int64_t>(1, left / width) : 1;
    const int64_t run = std::min({width - from, width - to, left});
    copies.emplace_back(std::vector<int64_t>{box.extents[0], blocks, box.extents[2], box.extents[3], run},
                        memory_shape(source.shape, width), memory_place(box.source_begin, channel, width),
                        memory_shape(target.shape, width), memory_place(box.target_begin, channel, width),
                        size_of(source.dtype));
    channel += blocks * run;
  }
  return copies;
}

bool has_channels_last(const TensorType& image, const Layout& layout) {
  return !layout.is_plain() && layout.blocks().empty() && channel_view(image, layout);
}

// As the memory lies: [batch][height][width of the image][channels].
BoxCopy copy_of_pixels(const TensorType& source, const TensorType& target, const Box& box) {
  const auto last = [](const auto& of_axes) {
    return std::vector<int64_t>{of_axes[0], of_axes[2], of_axes[3], of_axes[1]};
  };
  return {last(box.extents),         Shape(last(source.shape)), last(box.source_begin),
          Shape(last(target.shape)), last(box.target_begin),    size_of(source.dtype)};
}

}  // namespace

Kernel box_kernel(const KernelRequest& request, const Box& box, std::optional<FillValue> fill) {
  const TensorType &source = request.node.inputs[0].type(), &target = request.node.outputs[0];
  const Layout& layout = request.input_layouts[0];
  const int64_t width = common_block(source, layout, target);
  const bool is_last = target.shape.elements() > 0 && has_channels_last(source, layout);
  std::vector<BoxCopy> copies;
  if (width > 0)
    copies = copies_of_blocks(source, target, box, width);
  else if (is_last)
    copies.push_back(copy_of_pixels(source, target, box));
  else
    copies.emplace_back(box.extents, source.shape, box.source_begin, target.shape, box.target_begin,
                        size_of(source.dtype));
  Kernel kernel = plain_kernel(
      request.node,
      [copies = std::move(copies), fill](const KernelArguments& args) {
        if (fill) fill->run(args.outputs[0], args.team);
        for (const BoxCopy& copy : copies) copy.run(args.inputs[0], args.outputs[0], args.team);
      },
      "copy");
  if (width > 0 || is_last) {
    kernel.input_layouts[0] = layout;
    kernel.output_layouts[0] = onednn::image_layout_like(target, source, layout);
  }
  return kernel;
}

}  // namespace mox::internal
