#include "ops/shape/internal/permute.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"

namespace mox::internal {
namespace {

// Elements of the source's innermost axis that one unit of work covers.
constexpr int64_t kTile = 32;
// Inside, squares of this side are moved: even where the strides are powers of two, so that all rows of a
// square fall into one set of the first-level cache, eight lines a side fit into it.
constexpr int64_t kSquare = 8;
constexpr int64_t kBytesPerThread = 1 << 16;

// to[i][j] = from[j][i]: the source's rows are columns of the target.
template <typename T>
void move_square(const T* from, int64_t source_stride, T* to, int64_t target_stride, int64_t rows,
                 int64_t columns) {
  if (rows == kSquare && columns == kSquare) {  // with bounds that the compiler knows
    for (int64_t i = 0; i < kSquare; ++i)
      for (int64_t j = 0; j < kSquare; ++j) to[i * target_stride + j] = from[j * source_stride + i];
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * target_stride + j] = from[j * source_stride + i];
}

}  // namespace

Permute::Permute(const Shape& source, const std::vector<int>& permutation, size_t element_bytes)
    : element_bytes_(element_bytes) {
  if (source.elements() == 0) return;
  const std::vector<int64_t> strides = source.strides();
  for (int axis : permutation) {
    const int64_t extent = source[axis], stride = strides[axis];
    if (extent == 1) continue;
    if (!axes_.empty() && axes_.back().source_stride == stride * extent) {
      axes_.back().extent *= extent;
      axes_.back().source_stride = stride;
    } else {
      axes_.push_back({extent, stride, 0});
    }
  }
  int64_t step = 1;
  for (size_t i = axes_.size(); i-- > 0;) {
    axes_[i].target_stride = step;
    step *= axes_[i].extent;
    if (axes_[i].source_stride == 1) source_last_ = i;
  }
}

void Permute::run(const std::byte* source, std::byte* target, const Team& team) const {
  if (moves_nothing()) return;
  if (source_last_ == axes_.size() - 1) return run_rows(source, target, team);
  switch (element_bytes_) {
    case 1:
      return run_tiled(reinterpret_cast<const uint8_t*>(source), reinterpret_cast<uint8_t*>(target), team);
    case 2:
      return run_tiled(reinterpret_cast<const uint16_t*>(source), reinterpret_cast<uint16_t*>(target), team);
    case 4:
      return run_tiled(reinterpret_cast<const uint32_t*>(source), reinterpret_cast<uint32_t*>(target), team);
    case 8:
      return run_tiled(reinterpret_cast<const uint64_t*>(source), reinterpret_cast<uint64_t*>(target), team);
  }
  MOX_ASSERT(false, "an element has 1, 2, 4 or 8 bytes");
}

// The innermost axis is the same on both sides: whole rows move.
void Permute::run_rows(const std::byte* source, std::byte* target, const Team& team) const {
  const auto row_bytes = static_cast<size_t>(axes_.back().extent) * element_bytes_;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < axes_.size(); ++i) rows *= axes_[i].extent;
  const int64_t grain = std::max<int64_t>(1, kBytesPerThread / static_cast<int64_t>(row_bytes));
  team.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, from = 0;
      for (size_t i = axes_.size() - 1; i-- > 0;) {
        from += rest % axes_[i].extent * axes_[i].source_stride;
        rest /= axes_[i].extent;
      }
      std::memcpy(target + row * row_bytes, source + from * element_bytes_, row_bytes);
    }
  });
}

// The two innermost axes (of source and of target) are walked in squares, so that neither side strides
// through memory.
template <typename T>
void Permute::run_tiled(const T* source, T* target, const Team& team) const {
  const Axis across = axes_.back();       // target stride 1
  const Axis down = axes_[source_last_];  // source stride 1
  const int64_t tiles = (down.extent + kTile - 1) / kTile;
  int64_t slices = tiles;
  for (size_t i = 0; i + 1 < axes_.size(); ++i)
    if (i != source_last_) slices *= axes_[i].extent;
  const int64_t slice_bytes = std::min(down.extent, kTile) * across.extent * sizeof(T);
  const int64_t grain = std::max<int64_t>(1, kBytesPerThread / slice_bytes);
  team.parallel_for(slices, grain, [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) {
      const int64_t first = slice % tiles * kTile, last = std::min(first + kTile, down.extent);
      int64_t rest = slice / tiles;
      const T* from = source;
      T* to = target;
      for (size_t i = axes_.size() - 1; i-- > 0;) {
        if (i == source_last_) continue;
        from += rest % axes_[i].extent * axes_[i].source_stride;
        to += rest % axes_[i].extent * axes_[i].target_stride;
        rest /= axes_[i].extent;
      }
      for (int64_t column = 0; column < across.extent; column += kSquare)
        for (int64_t row = first; row < last; row += kSquare)
          move_square(from + row + column * across.source_stride, across.source_stride,
                      to + row * down.target_stride + column, down.target_stride,
                      std::min(kSquare, last - row), std::min(kSquare, across.extent - column));
    }
  });
}

}  // namespace mox::internal
