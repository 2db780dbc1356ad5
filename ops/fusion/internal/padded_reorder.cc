#include "ops/fusion/internal/padded_reorder.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/fusion/internal/element_conversion.h"
#include "ops/processor/onednn.h"

namespace mox {
namespace {

using Tag = dnnl::memory::format_tag;

// What a kernel makes of the floats 1, 2, ... on one thread, where memory held something else before.
std::vector<float> made_by(const Kernel& kernel, const TensorType& type) {
  const Team alone(1);
  std::vector<float> numbers(type.shape.elements()),
      made(kernel.output_layouts[0].bytes() / sizeof(float), -1);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  std::vector<std::byte> scratch(kernel.scratch_bytes);
  const auto* from = reinterpret_cast<const std::byte*>(numbers.data());
  auto* to = reinterpret_cast<std::byte*>(made.data());
  kernel.instantiate()({std::span(&from, 1), std::span(&to, 1), scratch.data(), alone, 0, 0});
  return made;
}

// Extents that end within a block in every dimension that has blocks.
bool arrives(Tag tag) {
  const TensorType type{DType::kFloat32, {20, 21, 3, 3}};
  const dnnl::memory::desc plain = onednn::plain_descriptor(type),
                           padded({20, 21, 3, 3}, dnnl::memory::data_type::f32, tag);
  const Kernel reorder = onednn::primitive_kernel(
      {type}, {type}, onednn::describe_reorder(plain, padded),
      {onednn::primitive_input(DNNL_ARG_FROM, 0, plain), onednn::primitive_output(DNNL_ARG_TO, 0, padded)});
  const Kernel elements =
      element_conversion_kernel(type, Layout::plain(type), onednn::layout_of(type, padded));
  return made_by(reorder, type) == made_by(elements, type);
}

}  // namespace

bool reorders_into_padding(const Layout& target) {
  if (!target.is_padded()) return true;
  const auto& blocks = target.blocks();
  const bool is_filter = std::ranges::any_of(
      blocks, [&](const Layout::Block& block) { return block.dimension != blocks.front().dimension; });
  static const bool images = arrives(Tag::aBcd8b) && arrives(Tag::aBcd16b);
  if (!is_filter) return images;
  static const bool filters = arrives(Tag::ABcd8b8a) && arrives(Tag::ABcd8a8b) && arrives(Tag::ABcd16b16a) &&
                              arrives(Tag::ABcd16a16b) && arrives(Tag::BAcd16a16b);
  return filters;
}

}  // namespace mox
