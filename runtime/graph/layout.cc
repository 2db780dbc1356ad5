#include "runtime/graph/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"

namespace mox {

Layout Layout::plain(const TensorType& type) {
  Layout layout;
  layout.bytes_ = type.bytes();
  layout.padded_extents_.assign(type.shape.begin(), type.shape.end());
  layout.strides_ = type.shape.strides();
  return layout;
}

Layout Layout::blocked(const TensorType& type, std::vector<int64_t> padded_extents,
                       std::vector<int64_t> strides, std::vector<Block> blocks) {
  const size_t rank = type.shape.rank();
  MOX_ASSERT(padded_extents.size() == rank && strides.size() == rank, "a layout has the rank of its type");
  Layout layout = plain(type);
  bool same_order = blocks.empty() && padded_extents == layout.padded_extents_;
  for (size_t i = 0; same_order && i < rank; ++i)  // the stride of an extent of one is of no consequence
    same_order = strides[i] == layout.strides_[i] || padded_extents[i] <= 1;
  if (same_order) return layout;
  layout.kind_ = Kind::kBlocked;
  layout.padded_ = padded_extents != layout.padded_extents_;
  layout.bytes_ =
      size_of(type.dtype) * static_cast<size_t>(std::accumulate(padded_extents.begin(), padded_extents.end(),
                                                                int64_t{1}, std::multiplies<>()));
  layout.padded_extents_ = std::move(padded_extents);
  layout.strides_ = std::move(strides);
  layout.blocks_ = std::move(blocks);
  return layout;
}

Layout Layout::opaque(size_t bytes, std::string key, std::shared_ptr<const void> description) {
  Layout layout;
  layout.kind_ = Kind::kOpaque;
  layout.bytes_ = bytes;
  layout.key_ = std::move(key);
  layout.description_ = std::move(description);
  return layout;
}

bool Layout::operator==(const Layout& other) const {
  if (kind_ != other.kind_ || bytes_ != other.bytes_) return false;
  switch (kind_) {
    case Kind::kPlain:
      return true;  // the shape belongs to the value, not to the layout
    case Kind::kOpaque:
      return key_ == other.key_;
    case Kind::kBlocked:
      break;
  }
  return padded_extents_ == other.padded_extents_ && strides_ == other.strides_ && blocks_ == other.blocks_;
}

std::string Layout::to_string() const {
  if (kind_ == Kind::kPlain) return "plain";
  if (kind_ == Kind::kOpaque) return fmt::format("opaque({})", key_);
  std::vector<int> order(strides_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strides_[a] > strides_[b]; });
  std::string text;
  for (int dimension : order) {
    const bool in_blocks =
        std::any_of(blocks_.begin(), blocks_.end(), [&](auto& b) { return b.dimension == dimension; });
    text += static_cast<char>((in_blocks ? 'A' : 'a') + dimension);
  }
  for (const Block& block : blocks_)
    text += fmt::format("{}{}", block.size, static_cast<char>('a' + block.dimension));
  return text;
}

}  // namespace mox
