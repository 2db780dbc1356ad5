// oneDNN behind the two-phase kernel interface: layouts to memory descriptors and back, and
// primitives as kernels.
//
// Internal to ops/: the only headers that show oneDNN's types are the ones in this folder.
#pragma once

#include <optional>
#include <vector>

#include "ops/processor/onednn_version.h"
#include "runtime/graph/kernel.h"

namespace mox::onednn {

dnnl::memory::data_type data_type_of(DType dtype);

// The descriptor of a row-major value.
dnnl::memory::desc plain_descriptor(const TensorType& type);
// The descriptor that lets a primitive choose the layout.
dnnl::memory::desc any_descriptor(const TensorType& type);
// The descriptor of an image with channels last.
dnnl::memory::desc channels_last_descriptor(const TensorType& image);
// The descriptor of a value of `type` that exists in `layout` (plain, blocked, or opaque as
// `layout_of` makes it).
dnnl::memory::desc descriptor_of(const TensorType& type, const Layout& layout);

// The layout that a descriptor stands for, of a value of `type`. A descriptor with one dimension more than
// the type is one of grouped filters, [groups, out / groups, ...]: it becomes a blocked layout of the type's
// own dimensions where that is possible. What has no strides (Winograd filters) or cannot be said in the
// type's dimensions becomes an opaque layout that carries the descriptor.
Layout layout_of(const TensorType& type, const dnnl::memory::desc& descriptor);

// A descriptor of the image in a layout of the same kind (plain, channels last, blocks of channels) as
// `like`, which is a layout of `like_type`; plain if it is of another kind.
dnnl::memory::desc image_descriptor_like(const TensorType& image, const TensorType& like_type,
                                         const Layout& like);

// The layout of that descriptor; plain for a value without elements.
Layout image_layout_like(const TensorType& image, const TensorType& like_type, const Layout& like);

// The descriptor inside of an opaque layout made by `layout_of`; nothing for other opaque layouts.
std::optional<dnnl::memory::desc> opaque_descriptor(const Layout& layout);

// One argument of a primitive: input or output `index` of the node under oneDNN's name (DNNL_ARG_SRC, ...).
struct PrimitiveArgument {
  enum class Direction { kInput, kOutput };
  int name;
  Direction direction;
  int index;
  dnnl::memory::desc descriptor;
  // The layout that the kernel states for it; without one, layout_of(type, descriptor). A matrix that the
  // primitive reads as transposed, for example, is plain.
  std::optional<Layout> layout = std::nullopt;
};
inline PrimitiveArgument primitive_input(int name, int index, const dnnl::memory::desc& descriptor) {
  return {name, PrimitiveArgument::Direction::kInput, index, descriptor};
}
inline PrimitiveArgument primitive_output(int name, int index, const dnnl::memory::desc& descriptor) {
  return {name, PrimitiveArgument::Direction::kOutput, index, descriptor};
}

// A kernel that runs one primitive. `description` must have been made with `attributes_with_scratchpad`.
// Inputs and outputs of the node that no argument names are plain. A step allocates nothing and looks nothing
// up: the primitive, its memory objects and the argument list are made once an instance.
Kernel primitive_kernel(const Node& node, const dnnl::primitive_desc_base& description,
                        std::vector<PrimitiveArgument> arguments);
// The same for what is not a node (a conversion between layouts).
Kernel primitive_kernel(const std::vector<TensorType>& inputs, const std::vector<TensorType>& outputs,
                        const dnnl::primitive_desc_base& description,
                        std::vector<PrimitiveArgument> arguments);

// A kernel that writes zeros to every output and reads nothing: what sums over an empty dimension are, and,
// where an output has no elements, no work at all. (oneDNN does not take empty dimensions.)
Kernel zero_kernel(const Node& node);
// Whether an input or output of the node has no elements.
bool has_empty_value(const Node& node);

}  // namespace mox::onednn
