#include "ops/processor/onednn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/processor/processor.h"
#include "runtime/base/error.h"

namespace mox::onednn {
namespace {

constexpr char kOpaquePrefix[] = "onednn ";

dnnl::memory::dims dims_of(const Shape& shape) {
  // oneDNN has no rank 0: a scalar is a vector of one.
  return shape.rank() == 0 ? dnnl::memory::dims{1} : dnnl::memory::dims(shape.begin(), shape.end());
}

bool is_row_major(const dnnl::memory::dims& extents, const Strided& s) {
  if (!s.blocks.empty() || s.padded_extents != extents) return false;
  int64_t expected = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (extents[i] != 1 && s.strides[i] != expected) return false;
    expected *= extents[i];
  }
  return true;
}

// Merges dimension 0 (groups) with dimension 1 (output channels of a group). False if the two do not lie in
// memory as one dimension would.
bool fold_groups(const dnnl::memory::dims& extents, Strided* s) {
  int64_t group_block = 1, channel_block = 1;
  for (const Layout::Block& block : s->blocks) {
    if (block.dimension == 0) group_block *= block.size;
    if (block.dimension == 1) channel_block *= block.size;
  }
  if (extents[1] == 1 && s->padded_extents[1] == 1) {  // depthwise: the groups are the channels
    s->padded_extents.erase(s->padded_extents.begin() + 1);
    s->strides.erase(s->strides.begin() + 1);
  } else if (group_block == 1 && s->padded_extents[0] == extents[0] && s->padded_extents[1] == extents[1] &&
             s->strides[0] == s->padded_extents[1] / channel_block * s->strides[1]) {
    s->padded_extents[1] *= s->padded_extents[0];
    s->padded_extents.erase(s->padded_extents.begin());
    s->strides.erase(s->strides.begin());
  } else {
    return false;
  }
  for (Layout::Block& block : s->blocks) block.dimension = std::max(0, block.dimension - 1);
  return true;
}

// One inner block whose blocks follow each other without a gap is no block at all (nChw16c of a 1 x 1 image).
void drop_idle_block(Strided* s) {
  if (s->blocks.size() != 1) return;
  const auto [dimension, size] = s->blocks[0];
  int64_t& stride = s->strides[dimension];
  if (stride != size) return;
  stride = 1;
  s->blocks.clear();
}

Layout opaque_layout(const dnnl::memory::desc& descriptor) {
  return Layout::opaque(descriptor.get_size(), kOpaquePrefix + description_text(descriptor),
                        std::make_shared<dnnl::memory::desc>(descriptor));
}

// Whether a primitive may cut a sum by the number of threads. oneDNN promises nothing about that: what is
// free of it was tried on the shapes of the zoo, and follows from what is summed (docs/determinism.md). Where
// nothing is known, as of matrix products, it may.
bool may_cut_sums_by_threads(const dnnl::primitive_desc_base& description) {
  using Kind = dnnl::primitive::kind;
  const Kind kind = description.get_kind();
  if (kind == Kind::convolution) {
    const bool sums_over_batch = description.query_md(dnnl::query::diff_weights_md).get_size() > 0;
    const std::string_view implementation = description.impl_info_str();
    return sums_over_batch || !(implementation.starts_with("jit") || implementation.starts_with("brg"));
  }
  // Moved elements, sums over a window, and, by statistics that are given, one element after the other.
  return kind != Kind::reorder && kind != kPoolingKind && kind != Kind::batch_normalization;
}

// The state of one primitive on one device.
class PrimitiveInstance {
 public:
  PrimitiveInstance(const dnnl_primitive_desc* description, const std::vector<PrimitiveArgument>& arguments,
                    const dnnl::memory::desc& scratchpad)
      : primitive_(description), stream_(engine()) {
    for (const PrimitiveArgument& argument : arguments) {
      add_memory(argument.name, argument.descriptor);
      sources_.push_back({argument.direction, static_cast<size_t>(argument.index)});
    }
    if (scratchpad.get_size() > 0) {
      add_memory(DNNL_ARG_SCRATCHPAD, scratchpad);
      has_scratchpad_ = true;
    }
    bound_.resize(memories_.size(), nullptr);
  }

  void run(const KernelArguments& arguments) {
    for (size_t i = 0; i < sources_.size(); ++i) {
      const auto [direction, index] = sources_[i];
      bind(i, direction == PrimitiveArgument::Direction::kInput
                  ? const_cast<std::byte*>(arguments.inputs[index])
                  : arguments.outputs[index]);
    }
    if (has_scratchpad_) bind(sources_.size(), arguments.scratch);
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream_.get(), arguments_.size(), arguments_.data());
    MOX_ASSERT(status == dnnl_success, "oneDNN could not run a primitive that it compiled");
  }

 private:
  void add_memory(int name, const dnnl::memory::desc& descriptor) {
    memories_.push_back(dnnl::memory(descriptor, engine(), DNNL_MEMORY_NONE));
    arguments_.push_back({name, memories_.back().get()});
  }
  // Only when the memory moved: setting it may take a pass over memory.
  void bind(size_t i, std::byte* data) {
    if (bound_[i] == data) return;
    bound_[i] = data;
    set_data(memories_[i], data, stream_);
  }

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<std::pair<PrimitiveArgument::Direction, size_t>> sources_;
  std::vector<std::byte*> bound_;
  bool has_scratchpad_ = false;
};

}  // namespace

dnnl::memory::data_type data_type_of(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::kFloat32:
      return Type::f32;
    case DType::kBFloat16:
      return Type::bf16;
    case DType::kInt32:
      return Type::s32;
    case DType::kUInt8:
      return Type::u8;
    case DType::kInt64:
    case DType::kBool:
      break;
  }
  MOX_ASSERT(false, fmt::format("oneDNN has no type for {}", to_string(dtype)));
}

dnnl::memory::desc plain_descriptor(const TensorType& type) {
  const dnnl::memory::dims dims = dims_of(type.shape);
  dnnl::memory::dims strides = type.shape.strides();
  if (strides.empty()) strides = {1};
  return {dims, data_type_of(type.dtype), strides};
}

dnnl::memory::desc any_descriptor(const TensorType& type) {
  return {dims_of(type.shape), data_type_of(type.dtype), dnnl::memory::format_tag::any};
}

dnnl::memory::desc channels_last_descriptor(const TensorType& image) {
  return {dims_of(image.shape), data_type_of(image.dtype), dnnl::memory::format_tag::nhwc};
}

dnnl::memory::desc descriptor_of(const TensorType& type, const Layout& layout) {
  if (layout.is_plain()) return plain_descriptor(type);
  if (layout.is_opaque()) {
    auto inside = opaque_descriptor(layout);
    MOX_ASSERT(inside.has_value(), "an opaque layout of another kind has no descriptor");
    return *inside;
  }
  const auto result = strided_descriptor(dims_of(type.shape), data_type_of(type.dtype),
                                         {layout.padded_extents(), layout.strides(), layout.blocks()});
  MOX_ASSERT(result.has_value(), fmt::format("oneDNN has no layout {}", layout.to_string()));
  return *result;
}

Layout layout_of(const TensorType& type, const dnnl::memory::desc& descriptor) {
  std::optional<Strided> strided = strided_of(descriptor);
  if (!strided) return opaque_layout(descriptor);
  const dnnl::memory::dims extents = extents_of(descriptor);
  if (is_row_major(extents, *strided)) return Layout::plain(type);
  const size_t rank = type.shape.rank();
  if (extents.size() == rank + 1 && !fold_groups(extents, &*strided)) return opaque_layout(descriptor);
  if (strided->strides.size() != rank) return opaque_layout(descriptor);
  // Only what `descriptor_of` finds the way back from.
  const auto back = strided_descriptor(dims_of(type.shape), data_type_of(type.dtype), *strided);
  if (!back || (extents.size() == rank && *back != descriptor)) return opaque_layout(descriptor);
  if (std::equal(strided->padded_extents.begin(), strided->padded_extents.end(), type.shape.begin()))
    drop_idle_block(&*strided);
  Layout layout = Layout::blocked(type, std::move(strided->padded_extents), std::move(strided->strides),
                                  std::move(strided->blocks));
  return layout.bytes() == descriptor.get_size() ? layout : opaque_layout(descriptor);
}

std::optional<dnnl::memory::desc> opaque_descriptor(const Layout& layout) {
  if (!layout.is_opaque() || !layout.key().starts_with(kOpaquePrefix)) return std::nullopt;
  return *std::static_pointer_cast<const dnnl::memory::desc>(layout.description());
}

Kernel primitive_kernel(const Node& node, const dnnl::primitive_desc_base& description,
                        std::vector<PrimitiveArgument> arguments) {
  std::vector<TensorType> inputs;
  for (const Tensor& input : node.inputs) inputs.push_back(input.type());
  return primitive_kernel(inputs, node.outputs, description, std::move(arguments));
}

Kernel primitive_kernel(const std::vector<TensorType>& inputs, const std::vector<TensorType>& outputs,
                        const dnnl::primitive_desc_base& description,
                        std::vector<PrimitiveArgument> arguments) {
  Kernel kernel;
  for (const TensorType& input : inputs) kernel.input_layouts.push_back(Layout::plain(input));
  for (const TensorType& output : outputs) kernel.output_layouts.push_back(Layout::plain(output));
  for (const PrimitiveArgument& argument : arguments) {
    const size_t i = argument.index;
    const bool is_input = argument.direction == PrimitiveArgument::Direction::kInput;
    const TensorType& type = is_input ? inputs[i] : outputs[i];
    (is_input ? kernel.input_layouts : kernel.output_layouts)[i] =
        argument.layout ? *argument.layout : layout_of(type, argument.descriptor);
  }
  const dnnl::memory::desc scratchpad = description.scratchpad_desc();
  kernel.scratch_bytes = scratchpad.get_size();
  kernel.implementation = description.impl_info_str();
  kernel.has_bits_by_threads = may_cut_sums_by_threads(description);
  // The description is shared with every instance: handles of oneDNN count their references.
  kernel.instantiate = [description, arguments = std::move(arguments), scratchpad]() -> KernelFunction {
    auto instance = std::make_shared<PrimitiveInstance>(description.get(), arguments, scratchpad);
    return [instance](const KernelArguments& run) { instance->run(run); };
  };
  return kernel;
}

Kernel zero_kernel(const Node& node) {
  std::vector<size_t> bytes;
  for (const TensorType& output : node.outputs) bytes.push_back(output.bytes());
  return plain_kernel(
      node,
      [bytes](const KernelArguments& arguments) {
        for (size_t i = 0; i < bytes.size(); ++i)
          if (bytes[i] > 0) std::memset(arguments.outputs[i], 0, bytes[i]);
      },
      "zero");
}

bool has_empty_value(const Node& node) {
  auto empty = [](const TensorType& type) { return type.shape.elements() == 0; };
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Tensor& t) { return empty(t.type()); }) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), empty);
}

dnnl::memory::desc image_descriptor_like(const TensorType& image, const TensorType& like_type,
                                         const Layout& like) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::data_type type = data_type_of(image.dtype);
  const dnnl::memory::dims dims(image.shape.begin(), image.shape.end());
  // A 1 x 1 image of whole blocks is at once plain, channels last and blocked; blocks as wide as a register
  // are what convolutions go on with.
  const bool is_pixel = like_type.shape[2] == 1 && like_type.shape[3] == 1 && like.is_plain();
  const bool has_16_lanes = processor().lanes >= 16;
  const Tag wide = has_16_lanes ? Tag::nChw16c : Tag::nChw8c,
            other = has_16_lanes ? Tag::nChw8c : Tag::nChw16c;
  for (const Tag tag : {wide, other, Tag::nhwc}) {
    const dnnl::memory::desc candidate(dnnl::memory::dims(like_type.shape.begin(), like_type.shape.end()),
                                       data_type_of(like_type.dtype), tag);
    if (like.is_plain() && !is_pixel) break;
    if (layout_of(like_type, candidate) == like) return {dims, type, tag};
  }
  return plain_descriptor(image);
}

Layout image_layout_like(const TensorType& image, const TensorType& like_type, const Layout& like) {
  if (image.shape.elements() == 0) return Layout::plain(image);
  return layout_of(image, image_descriptor_like(image, like_type, like));
}

}  // namespace mox::onednn
