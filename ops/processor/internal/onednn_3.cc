// oneDNN 3, which makes layouts with inner blocks by name (a format tag) alone: the one that a layout stands
// for is looked for among all names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ops/processor/onednn_version.h"
#include "runtime/base/error.h"

namespace mox::onednn {
namespace {

constexpr int kMostDimensions = 6;

// The descriptor by name; nothing if the name is one of another number of dimensions.
std::optional<dnnl::memory::desc> tagged(const dnnl::memory::dims& extents, dnnl::memory::data_type type,
                                         int tag) {
  dnnl_memory_desc_t made = nullptr;
  const dnnl_status_t status = dnnl_memory_desc_create_with_tag(
      &made, static_cast<int>(extents.size()), extents.data(), static_cast<dnnl_data_type_t>(type),
      static_cast<dnnl_format_tag_t>(tag));
  if (status != dnnl_success) return std::nullopt;
  return dnnl::memory::desc(made);
}

struct BlockedTag {
  int tag;
  std::vector<Layout::Block> blocks;
};

// All names of layouts with blocks, by their number of dimensions.
const std::vector<BlockedTag>& blocked_tags(size_t rank) {
  static const auto all = [] {
    std::array<std::vector<BlockedTag>, kMostDimensions + 1> result;
    for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag)
      for (size_t dimensions = 1; dimensions < result.size(); ++dimensions) {
        const auto made = tagged(dnnl::memory::dims(dimensions, 1), dnnl::memory::data_type::f32, tag);
        if (!made) continue;
        const auto strided = strided_of(*made);
        if (strided && !strided->blocks.empty()) result[dimensions].push_back({tag, strided->blocks});
      }
    return result;
  }();
  MOX_ASSERT(rank < all.size(), "layouts with blocks have few dimensions");
  return all[rank];
}

// The stride of an extent of one is of no consequence.
bool lies_as(const Strided& a, const Strided& b) {
  if (a.padded_extents != b.padded_extents || a.blocks != b.blocks) return false;
  for (size_t i = 0; i < a.strides.size(); ++i) {
    int64_t block = 1;
    for (const Layout::Block& inner : a.blocks)
      if (static_cast<size_t>(inner.dimension) == i) block *= inner.size;
    if (a.strides[i] != b.strides[i] && a.padded_extents[i] != block) return false;
  }
  return true;
}

}  // namespace

bool is_same(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
  return a == b && a.get_strides() == b.get_strides();
}

dnnl::batch_normalization_forward::primitive_desc describe_normalisation(const dnnl::memory::desc& x,
                                                                         float epsilon,
                                                                         dnnl::normalization_flags flags) {
  return describe<dnnl::batch_normalization_forward>(dnnl::prop_kind::forward_inference, x, x, epsilon,
                                                     flags);
}

dnnl::memory::dims extents_of(const dnnl::memory::desc& descriptor) { return descriptor.get_dims(); }

std::optional<Strided> strided_of(const dnnl::memory::desc& descriptor) {
  if (descriptor.get_format_kind() != dnnl::memory::format_kind::blocked ||
      descriptor.get_submemory_offset() != 0)
    return std::nullopt;
  Strided result{descriptor.get_padded_dims(), descriptor.get_strides(), {}};
  const dnnl::memory::dims sizes = descriptor.get_inner_blks(), dimensions = descriptor.get_inner_idxs();
  for (size_t i = 0; i < sizes.size(); ++i)
    result.blocks.push_back({static_cast<int>(dimensions[i]), sizes[i]});
  return result;
}

std::optional<dnnl::memory::desc> strided_descriptor(const dnnl::memory::dims& extents,
                                                     dnnl::memory::data_type type, const Strided& strided) {
  if (strided.blocks.empty()) {
    if (strided.padded_extents != extents) return std::nullopt;
    return dnnl::memory::desc(extents, type, strided.strides);
  }
  std::optional<dnnl::memory::desc> alike;
  for (const BlockedTag& candidate : blocked_tags(extents.size())) {
    if (candidate.blocks != strided.blocks) continue;
    const auto made = tagged(extents, type, candidate.tag);
    if (!made) continue;
    const auto parts = strided_of(*made);
    if (!parts || !lies_as(*parts, strided)) continue;
    if (parts->strides == strided.strides) return made;
    alike = made;
  }
  return alike;
}

std::string description_text(const dnnl::memory::desc& descriptor) {
  const auto strided = strided_of(descriptor);
  MOX_ASSERT(strided.has_value(), "oneDNN 3 was asked for no layout that it does not describe");
  std::vector<int64_t> sizes, dimensions;
  for (const Layout::Block& block : strided->blocks) {
    sizes.push_back(block.size);
    dimensions.push_back(block.dimension);
  }
  return fmt::format("dims={} padded={} strides={} blocks={} of {}", fmt::join(descriptor.get_dims(), "x"),
                     fmt::join(strided->padded_extents, "x"), fmt::join(strided->strides, ","),
                     fmt::join(sizes, ","), fmt::join(dimensions, ","));
}

void set_data(dnnl::memory& memory, std::byte* data, const dnnl::stream&) {
  dnnl_memory_set_data_handle(memory.get(), data);
}

}  // namespace mox::onednn
