#include "ops/fusion/internal/element_conversion.h"

#include <cstring>
#include <vector>

#include "runtime/base/error.h"

namespace mox {
namespace {

// Of one dimension, by index: how far from the first element the index moves in memory. The distances of the
// dimensions add up, since each inner block belongs to one of them.
using Distances = std::vector<int64_t>;

std::vector<Distances> distances_of(const Shape& shape, const Layout& layout) {
  std::vector<Distances> all(shape.rank());
  int64_t stride = 1;
  for (size_t d = all.size(); d-- > 0;) {
    for (int64_t i = 0; i < shape[d]; ++i) all[d].push_back(layout.is_plain() ? i * stride : 0);
    stride *= shape[d];
  }
  if (layout.is_plain()) return all;
  for (size_t d = 0; d < all.size(); ++d)
    for (size_t i = 0; i < all[d].size(); ++i) {
      int64_t rest = i, step = 1;
      for (auto block = layout.blocks().rbegin(); block != layout.blocks().rend(); ++block) {
        if (block->dimension == static_cast<int>(d)) {
          all[d][i] += rest % block->size * step;
          rest /= block->size;
        }
        step *= block->size;
      }
      all[d][i] += rest * layout.strides()[d];
    }
  return all;
}

// Moves all elements that the dimensions from `dimension` on tell apart.
template <typename Element>
void move_elements(const std::vector<Distances>& from, const std::vector<Distances>& to, size_t dimension,
                   const Element* source, Element* target) {
  const Distances &reading = from[dimension], &writing = to[dimension];
  const bool is_last = dimension + 1 == from.size();
  for (size_t i = 0; i < reading.size(); ++i)
    if (is_last)
      target[writing[i]] = source[reading[i]];
    else
      move_elements(from, to, dimension + 1, source + reading[i], target + writing[i]);
}

template <typename Element>
KernelFunction conversion_of(const std::vector<Distances>& reading, const std::vector<Distances>& writing,
                             size_t bytes, bool is_padded) {
  return [=](const KernelArguments& run) {
    const auto* source = reinterpret_cast<const Element*>(run.inputs[0]);
    auto* target = reinterpret_cast<Element*>(run.outputs[0]);
    if (is_padded) std::memset(run.outputs[0], 0, bytes);
    if (reading.empty()) {
      *target = *source;
      return;
    }
    const auto first_extent = static_cast<int64_t>(reading[0].size());
    run.team.parallel_for(first_extent, 1, [&](int64_t begin, int64_t end) {
      for (size_t i = begin; i < static_cast<size_t>(end); ++i) {
        if (reading.size() == 1)
          target[writing[0][i]] = source[reading[0][i]];
        else
          move_elements(reading, writing, 1, source + reading[0][i], target + writing[0][i]);
      }
    });
  };
}

// Bits, whatever they stand for.
KernelFunction conversion_of(size_t element_bytes, const std::vector<Distances>& reading,
                             const std::vector<Distances>& writing, size_t bytes, bool is_padded) {
  switch (element_bytes) {
    case 1:
      return conversion_of<uint8_t>(reading, writing, bytes, is_padded);
    case 2:
      return conversion_of<uint16_t>(reading, writing, bytes, is_padded);
    case 4:
      return conversion_of<uint32_t>(reading, writing, bytes, is_padded);
    default:
      MOX_ASSERT(element_bytes == 8, "elements of 1, 2, 4 or 8 bytes");
      return conversion_of<uint64_t>(reading, writing, bytes, is_padded);
  }
}

}  // namespace

Kernel element_conversion_kernel(const TensorType& type, const Layout& from, const Layout& to) {
  Kernel kernel;
  kernel.input_layouts = {from};
  kernel.output_layouts = {to};
  kernel.implementation = "elements";
  kernel.instantiate = [element_bytes = size_of(type.dtype), reading = distances_of(type.shape, from),
                        writing = distances_of(type.shape, to), bytes = to.bytes(),
                        is_padded = to.is_padded()]() -> KernelFunction {
    return conversion_of(element_bytes, reading, writing, bytes, is_padded);
  };
  return kernel;
}

}  // namespace mox
