#include "ops/elementwise/internal/access.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::elementwise {
namespace {

// One dimension of a walk over memory: `extent` steps, each `step` logical positions along `dimension`.
struct PhysicalDimension {
  int dimension;
  int64_t extent;
  int64_t step;
};

std::vector<PhysicalDimension> physical_dimensions(const Layout& layout) {
  const size_t rank = layout.strides().size();
  std::vector<int64_t> block_size(rank, 1);
  for (const Layout::Block& block : layout.blocks()) block_size[block.dimension] *= block.size;
  std::vector<PhysicalDimension> result;
  for (size_t d = 0; d < rank; ++d)
    result.push_back({static_cast<int>(d), layout.padded_extents()[d] / block_size[d], block_size[d]});
  // The strides of an extent of 1 mean nothing.
  std::erase_if(result, [](const PhysicalDimension& p) { return p.extent == 1; });
  std::stable_sort(result.begin(), result.end(), [&](const PhysicalDimension& a, const PhysicalDimension& b) {
    return layout.strides()[a.dimension] > layout.strides()[b.dimension];
  });
  for (const Layout::Block& block : layout.blocks()) {
    int64_t& step = block_size[block.dimension];
    step /= block.size;
    result.push_back({block.dimension, block.size, step});
  }
  return result;
}

}  // namespace

Access Access::direct() { return {}; }

Access Access::broadcast(const Shape& shape, const Shape& output_shape, const Layout& output_layout) {
  Access access;
  if (shape.elements() == 1) {
    access.kind_ = Kind::kScalar;
    access.extents_ = {1};
    access.strides_ = {0};
    return access;
  }
  MOX_ASSERT(!output_layout.is_padded() && !output_layout.is_opaque(), "broadcasting reads no padding");
  const std::vector<int64_t> plain_strides = shape.strides();
  const int missing = output_shape.rank() - shape.rank();
  for (const PhysicalDimension& p : physical_dimensions(output_layout)) {
    const int axis = p.dimension - missing;
    const bool repeats = axis < 0 || shape[axis] == 1;
    const int64_t stride = repeats ? 0 : plain_strides[axis] * p.step;
    if (!access.extents_.empty() && access.strides_.back() == stride * p.extent) {
      access.extents_.back() *= p.extent;
      access.strides_.back() = stride;
    } else {
      access.extents_.push_back(p.extent);
      access.strides_.push_back(stride);
    }
  }
  access.kind_ = Kind::kGathered;
  if (access.extents_.size() == 1 && access.strides_[0] == 1) access.kind_ = Kind::kDirect;
  if (access.extents_.size() == 2 && access.strides_[0] == 0 && access.strides_[1] == 1) {
    access.kind_ = Kind::kPeriodic;
    access.period_ = access.extents_[1];
  }
  return access;
}

template <typename Element>
void Access::gather_elements(const Element* from, int64_t begin, int64_t count, Element* to) const {
  constexpr size_t kMaxRank = 32;
  int64_t index[kMaxRank];
  const size_t rank = extents_.size();
  MOX_ASSERT(rank >= 1 && rank <= kMaxRank, "a walk has between 1 and 32 dimensions");
  const size_t inner = rank - 1;
  int64_t offset = 0;  // of the row, in elements of the operand
  for (size_t d = rank; d-- > 0; begin /= extents_[d]) {
    index[d] = begin % extents_[d];
    if (d != inner) offset += index[d] * strides_[d];
  }
  int64_t position = index[inner];
  const int64_t stride = strides_[inner];
  while (count > 0) {
    const int64_t run = std::min(count, extents_[inner] - position);
    const Element* source = from + offset + position * stride;
    if (stride == 0) {
      std::fill_n(to, run, *source);
    } else if (stride == 1) {
      std::copy_n(source, run, to);
    } else {
      for (int64_t i = 0; i < run; ++i) to[i] = source[i * stride];
    }
    to += run;
    count -= run;
    position = 0;
    for (size_t d = inner; count > 0 && d-- > 0;) {
      offset += strides_[d];
      if (++index[d] < extents_[d]) break;
      offset -= extents_[d] * strides_[d];
      index[d] = 0;
    }
  }
}

void Access::gather(const std::byte* from, size_t element_bytes, int64_t begin, int64_t count,
                    std::byte* to) const {
  MOX_ASSERT(kind_ != Kind::kDirect, "a direct operand is read where it is");
  if (kind_ == Kind::kScalar) begin = 0;
  auto gather_as = [&]<typename Element>(Element) {
    const auto* source = reinterpret_cast<const Element*>(from);
    auto* target = reinterpret_cast<Element*>(to);
    if (kind_ == Kind::kScalar) {
      std::fill_n(target, count, *source);
    } else {
      gather_elements(source, begin, count, target);
    }
  };
  switch (element_bytes) {
    case 1:
      return gather_as(uint8_t{});
    case 2:
      return gather_as(uint16_t{});
    case 4:
      return gather_as(uint32_t{});
    case 8:
      return gather_as(uint64_t{});
    default:
      MOX_ASSERT(false, "elements have 1, 2, 4 or 8 bytes");
  }
}

Layout with_dtype(const Layout& layout, const TensorType& type) {
  if (layout.is_plain()) return Layout::plain(type);
  return Layout::blocked(type, layout.padded_extents(), layout.strides(), layout.blocks());
}

}  // namespace mox::elementwise
