// The conversion between layouts that the compiler inserts (convert_layout of ops/fusion/default_rules.h):
// our own of filters where it has one, and oneDNN's reorder.
#include "ops/convolution/filter_conversion.h"
#include "ops/fusion/default_rules.h"
#include "ops/fusion/internal/element_conversion.h"
#include "ops/fusion/internal/padded_reorder.h"
#include "ops/processor/onednn.h"
#include "ops/processor/processor.h"
#include "runtime/base/error.h"

namespace mox {
namespace {

using onednn::descriptor_of;

// Plain memory seen in the dimensions of `other`: grouped filters have one dimension more inside of oneDNN.
dnnl::memory::desc plain_like(const TensorType& type, const dnnl::memory::desc& other) {
  return onednn::plain_descriptor({type.dtype, Shape(onednn::extents_of(other))});
}

// Truth values are bytes like any other.
TensorType as_moved(const TensorType& type) {
  return {type.dtype == DType::kBool ? DType::kUInt8 : type.dtype, type.shape};
}

// The layout of a value in the dimensions that its descriptor has; nothing for what has no strides.
std::optional<Layout> strided_layout(DType dtype, const dnnl::memory::desc& descriptor) {
  auto strided = onednn::strided_of(descriptor);
  if (!strided) return std::nullopt;
  return Layout::blocked({dtype, Shape(onednn::extents_of(descriptor))}, std::move(strided->padded_extents),
                         std::move(strided->strides), std::move(strided->blocks));
}

// For padding that oneDNN does not handle on this machine; nothing where it does.
std::optional<Kernel> conversion_into_padding(const TensorType& type, const dnnl::memory::desc& source,
                                              const dnnl::memory::desc& target) {
  const auto from = strided_layout(type.dtype, source), to = strided_layout(type.dtype, target);
  if (!from || !to || reorders_into_padding(*to)) return std::nullopt;
  return element_conversion_kernel({type.dtype, Shape(onednn::extents_of(target))}, *from, *to);
}

Kernel reorder_kernel(const TensorType& type, const Layout& from, const Layout& to) {
  dnnl::memory::desc source = descriptor_of(type, from), target = descriptor_of(type, to);
  if (from.is_plain()) source = plain_like(type, target);
  if (to.is_plain()) target = plain_like(type, source);
  if (auto kernel = conversion_into_padding(type, source, target)) {
    kernel->input_layouts = {from};
    kernel->output_layouts = {to};
    return *std::move(kernel);
  }
  const auto description = onednn::describe_reorder(source, target);
  onednn::PrimitiveArgument input = onednn::primitive_input(DNNL_ARG_FROM, 0, source);
  onednn::PrimitiveArgument output = onednn::primitive_output(DNNL_ARG_TO, 0, target);
  input.layout = from;
  output.layout = to;
  return onednn::primitive_kernel({type}, {type}, description, {input, output});
}

}  // namespace

Kernel convert_layout(const TensorType& type, const Layout& from, const Layout& to, const Team&) {
  MOX_ASSERT(type.shape.elements() > 0, "a value without elements has only the plain layout");
  for (const Layout* layout : {&from, &to})
    MOX_ASSERT(!layout->is_opaque() || onednn::opaque_descriptor(*layout),
               "no conversion from or to an opaque layout");
  MOX_ASSERT(!(from.is_opaque() && to.is_opaque()), "no conversion between two opaque layouts");
  if (auto kernel = filter_conversion_kernel(type, from, to)) return *std::move(kernel);
  // Without vectors of them oneDNN moves bfloat16 numbers by way of float32, which makes zeros of the
  // smallest ones and quiet NaNs of all NaNs.
  if (type.dtype == DType::kBFloat16 && !processor().bfloat16_vectors && !from.is_opaque() && !to.is_opaque())
    return element_conversion_kernel(type, from, to);
  return reorder_kernel(as_moved(type), from, to);
}

}  // namespace mox
