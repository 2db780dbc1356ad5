#include "ops/shape/internal/box_copy.h"

#include <algorithm>
#include <cstring>

namespace mox::internal {
namespace {

constexpr int64_t kBytesPerThread = 1 << 16;

}  // namespace

BoxCopy::BoxCopy(const std::vector<int64_t>& extents, const Shape& source,
                 const std::vector<int64_t>& source_begin, const Shape& target,
                 const std::vector<int64_t>& target_begin, size_t element_bytes) {
  const std::vector<int64_t> source_strides = source.strides(), target_strides = target.strides();
  const int64_t bytes = element_bytes;
  // Adjacent axes whose elements follow each other on both sides become one.
  std::vector<Axis> axes{{1, bytes, bytes}};
  bool empty = false;
  for (size_t i = extents.size(); i-- > 0;) {
    const Axis axis{extents[i], source_strides[i] * bytes, target_strides[i] * bytes};
    source_offset_ += source_begin[i] * axis.source_stride;
    target_offset_ += target_begin[i] * axis.target_stride;
    empty |= axis.extent == 0;
    if (axis.extent == 1) continue;
    Axis& last = axes.back();
    if (axis.source_stride == last.source_stride * last.extent &&
        axis.target_stride == last.target_stride * last.extent)
      last.extent *= axis.extent;
    else
      axes.push_back(axis);
  }
  if (empty) {
    rows_ = 0;
    return;
  }
  run_bytes_ = axes.front().extent * bytes;
  if (axes.size() > 1) row_ = axes[1];
  for (size_t i = 2; i < axes.size(); ++i) {
    outer_.push_back(axes[i]);
    rows_ *= axes[i].extent;
  }
}

void BoxCopy::run(const std::byte* source, std::byte* target, const Team& team) const {
  if (rows_ == 0) return;
  source += source_offset_;
  target += target_offset_;
  if (rows_ == 1 && row_.extent == 1) {
    team.parallel_for(run_bytes_, kBytesPerThread, [&](int64_t begin, int64_t end) {
      std::memcpy(target + begin, source + begin, end - begin);
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kBytesPerThread / run_bytes_);
  team.parallel_for(rows_ * row_.extent, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      int64_t rest = at / row_.extent;
      const int64_t first = at % row_.extent, last = std::min(row_.extent, first + end - at);
      const std::byte* from = source;
      std::byte* to = target;
      for (const Axis& axis : outer_) {
        from += rest % axis.extent * axis.source_stride;
        to += rest % axis.extent * axis.target_stride;
        rest /= axis.extent;
      }
      for (int64_t i = first; i < last; ++i)
        std::memcpy(to + i * row_.target_stride, from + i * row_.source_stride, run_bytes_);
      at += last - first;
    }
  });
}

}  // namespace mox::internal
