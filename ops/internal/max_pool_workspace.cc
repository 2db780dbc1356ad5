#include "ops/internal/max_pool_workspace.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace mox::onednn {
namespace {

constexpr char kPrefix[] = "max_pool workspace of ";

std::string text_of(const dnnl::memory::desc& descriptor) {
  const dnnl_memory_desc_t& d = descriptor.data;
  std::string text;
  for (int i = 0; i < d.ndims; ++i)
    text += fmt::format("{}{}/{}", i ? "x" : "", d.dims[i], d.format_desc.blocking.strides[i]);
  for (int i = 0; i < d.format_desc.blocking.inner_nblks; ++i)
    text +=
        fmt::format(",{} of {}", d.format_desc.blocking.inner_blks[i], d.format_desc.blocking.inner_idxs[i]);
  return text;
}

}  // namespace

Layout workspace_layout(const dnnl::pooling_v2_forward::primitive_desc& forward) {
  const std::string key = fmt::format("{}{} to {} by {}", kPrefix, text_of(forward.src_desc()),
                                      text_of(forward.dst_desc()), forward.impl_info_str());
  return Layout::opaque(forward.workspace_desc().get_size(), key,
                        std::make_shared<dnnl::pooling_v2_forward::primitive_desc>(forward));
}

const dnnl::pooling_v2_forward::primitive_desc& forward_of_workspace(const Layout& layout) {
  MOX_ASSERT(layout.is_opaque() && layout.key().starts_with(kPrefix),
             "the workspace comes from max_pool's kernel");
  return *std::static_pointer_cast<const dnnl::pooling_v2_forward::primitive_desc>(layout.description());
}

}  // namespace mox::onednn
