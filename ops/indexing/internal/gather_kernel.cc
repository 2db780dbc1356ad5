#include "ops/indexing/internal/gather_kernel.h"

#include <algorithm>
#include <cstring>

#include "ops/support/axis_view.h"
#include "ops/support/indices.h"

namespace mox::internal {
namespace {

constexpr int64_t kBytesPerThread = 1 << 16;

}  // namespace

Kernel gather_kernel(const Node& node, int axis, std::string index_name, std::string bound_name) {
  const TensorType& type = node.inputs[0].type();
  const AxisView view = axis_view(type.shape, axis);
  const int64_t count = node.inputs[1].shape().elements();
  const int64_t slice_bytes = view.inner * size_of(type.dtype);
  IndexCheck check(node, 1, view.extent, std::move(index_name), std::move(bound_name));
  return plain_kernel(
      node,
      [view, count, slice_bytes, check = std::move(check)](const KernelArguments& args) {
        const IndexReader indices = check.checked(args);
        if (slice_bytes == 0) return;
        const std::byte* source = args.inputs[0];
        std::byte* target = args.outputs[0];
        const int64_t grain = std::max<int64_t>(1, kBytesPerThread / slice_bytes);
        args.team.parallel_for(view.outer * count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            std::memcpy(target + i * slice_bytes,
                        source + (i / count * view.extent + indices[i % count]) * slice_bytes, slice_bytes);
        });
      },
      "copy");
}

}  // namespace mox::internal
