// What max_pool hands to its gradient: oneDNN's workspace, in an opaque layout that carries the forward
// description, so that the backward kernel is made for exactly that workspace.
#pragma once

#include "ops/internal/dnnl.h"

namespace mox::onednn {

Layout workspace_layout(const dnnl::pooling_v2_forward::primitive_desc& forward);
// Asserts that `layout` is one that workspace_layout made.
const dnnl::pooling_v2_forward::primitive_desc& forward_of_workspace(const Layout& layout);

}  // namespace mox::onednn
