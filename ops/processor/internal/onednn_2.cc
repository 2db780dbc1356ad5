// oneDNN 2, whose memory descriptors are plain structures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ops/processor/onednn_version.h"

namespace mox::onednn {

bool is_same(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
  if (a != b) return false;
  if (a.data.format_kind != dnnl_blocked) return true;
  const dnnl_dim_t *of_a = a.data.format_desc.blocking.strides, *of_b = b.data.format_desc.blocking.strides;
  return std::equal(of_a, of_a + a.data.ndims, of_b);
}

dnnl::batch_normalization_forward::primitive_desc describe_normalisation(const dnnl::memory::desc& x,
                                                                         float epsilon,
                                                                         dnnl::normalization_flags flags) {
  return describe<dnnl::batch_normalization_forward>(dnnl::prop_kind::forward_inference, x, epsilon, flags);
}

dnnl::memory::dims extents_of(const dnnl::memory::desc& descriptor) { return descriptor.dims(); }

std::optional<Strided> strided_of(const dnnl::memory::desc& descriptor) {
  const dnnl_memory_desc_t& d = descriptor.data;
  if (d.format_kind != dnnl_blocked || d.offset0 != 0 || d.extra.flags != dnnl_memory_extra_flag_none)
    return std::nullopt;
  const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  Strided result;
  result.padded_extents.assign(d.padded_dims, d.padded_dims + d.ndims);
  result.strides.assign(blocking.strides, blocking.strides + d.ndims);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    result.blocks.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
  return result;
}

std::optional<dnnl::memory::desc> strided_descriptor(const dnnl::memory::dims& extents,
                                                     dnnl::memory::data_type type, const Strided& strided) {
  // Row-major at first: oneDNN refuses the strides of blocks here.
  dnnl::memory::desc result(extents, type, dnnl::memory::dims{});
  dnnl_memory_desc_t& d = result.data;
  std::copy(strided.padded_extents.begin(), strided.padded_extents.end(), d.padded_dims);
  dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  std::copy(strided.strides.begin(), strided.strides.end(), blocking.strides);
  blocking.inner_nblks = 0;
  for (const Layout::Block& block : strided.blocks) {
    blocking.inner_blks[blocking.inner_nblks] = block.size;
    blocking.inner_idxs[blocking.inner_nblks++] = block.dimension;
  }
  return result;
}

std::string description_text(const dnnl::memory::desc& descriptor) {
  const dnnl_memory_desc_t& d = descriptor.data;
  std::string text = fmt::format("kind={} dims={}", static_cast<int>(d.format_kind),
                                 fmt::join(d.dims, d.dims + d.ndims, "x"));
  if (d.format_kind == dnnl_blocked) {
    const dnnl_blocking_desc_t& b = d.format_desc.blocking;
    text += fmt::format(" strides={} blocks={} of {}", fmt::join(b.strides, b.strides + d.ndims, ","),
                        fmt::join(b.inner_blks, b.inner_blks + b.inner_nblks, ","),
                        fmt::join(b.inner_idxs, b.inner_idxs + b.inner_nblks, ","));
  } else if (d.format_kind == dnnl_format_kind_wino) {
    const dnnl_wino_desc_t& w = d.format_desc.wino_desc;
    text += fmt::format(" winograd={} r={} alpha={} blocks={},{},{},{}", static_cast<int>(w.wino_format), w.r,
                        w.alpha, w.ic_block, w.oc_block, w.ic2_block, w.oc2_block);
  }
  return text;
}

void set_data(dnnl::memory& memory, std::byte* data, const dnnl::stream& stream) {
  dnnl_memory_set_data_handle_v2(memory.get(), data, stream.get());
}

}  // namespace mox::onednn
