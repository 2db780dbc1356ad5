// A box of an image in a layout that keeps its channels in blocks (nChw16c): slice and pad of such an image need not leave the
// layout, though a box may begin within a block.
#pragma once

#include <optional>
#include <vector>

#include "ops/internal/box_copy.h"
#include "runtime/graph/layout.h"

namespace mox::internal {

struct BlockedBox {
  Layout source, target;
  std::vector<BoxCopy> copies;  // one after the other
};

// The copy of `extents` elements along each axis from `source_begin` of an image of type `source` in the layout `layout` to
// `target_begin` of one of type `target` in the same layout. Nothing if it has no such blocks, or either image does not fill
// them: what is beside its channels would have to become zero.
std::optional<BlockedBox> blocked_box(const std::vector<int64_t>& extents, const TensorType& source,
                                      const Layout& layout, const std::vector<int64_t>& source_begin,
                                      const TensorType& target, const std::vector<int64_t>& target_begin);

}  // namespace mox::internal
