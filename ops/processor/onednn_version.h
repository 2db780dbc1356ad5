// What differs between oneDNN 2 and 3, said once: the rest of ops/ is written against this header and builds
// with both.
//
// oneDNN 3 has no descriptors of operations (a primitive description takes their arguments itself), its
// memory descriptors are handles whose parts are asked for, and what 2 calls pooling_v2 is its only pooling.
// Functions that are declared here and not defined are in onednn_2.cc or onednn_3.cc, of which the build
// takes the one that fits.
//
// Any thread. Functions throw what oneDNN throws, dnnl::error.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/layout.h"

namespace mox::onednn {

// The CPU engine of the process. Immutable; safe from any thread.
inline const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// Attributes that make a primitive use the kernel's scratch memory instead of memory of its own.
inline dnnl::primitive_attr attributes_with_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// The description of a primitive on `engine()` with `attributes_with_scratchpad()`: describe<dnnl::matmul>(a,
// b, y). The arguments are those of its operation, in oneDNN's order.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), arguments..., attributes_with_scratchpad());
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...),
                                            attributes_with_scratchpad(), engine());
#endif
}

// The same of a gradient; `forward` is the description of the operation that it is the gradient of.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_gradient(const Forward& forward, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine(), arguments..., forward, attributes_with_scratchpad());
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(arguments...),
                                            attributes_with_scratchpad(), engine(), forward);
#endif
}

#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
constexpr dnnl::primitive::kind kPoolingKind = dnnl::primitive::kind::pooling;
#else
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
constexpr dnnl::primitive::kind kPoolingKind = dnnl::primitive::kind::pooling_v2;
#endif

// Whether the gradient of a convolution with strides, left to itself, chooses another layout of the images
// than the convolution does: then each such convolution would cost conversions of images.
constexpr bool kGradientsMayTurnImages = DNNL_VERSION_MAJOR >= 3;

// Batch normalisation by a mean and a variance that are given, of x to a y in the same layout.
dnnl::batch_normalization_forward::primitive_desc describe_normalisation(const dnnl::memory::desc& x,
                                                                         float epsilon,
                                                                         dnnl::normalization_flags flags);

// How many elements a value has along each dimension.
dnnl::memory::dims extents_of(const dnnl::memory::desc& descriptor);

// Where the elements are: strides of the outer (block) index, in elements, and blocks from the outermost
// inner one to the innermost, as in Layout.
struct Strided {
  std::vector<int64_t> padded_extents, strides;
  std::vector<Layout::Block> blocks;
};
// Nothing for what has no strides, has an offset or holds more than the elements.
std::optional<Strided> strided_of(const dnnl::memory::desc& descriptor);
// The way back; nothing where oneDNN knows no such layout.
std::optional<dnnl::memory::desc> strided_descriptor(const dnnl::memory::dims& extents,
                                                     dnnl::memory::data_type type, const Strided& strided);
// Text that two descriptors share if and only if they stand for the same layout of the same extents.
std::string description_text(const dnnl::memory::desc& descriptor);

// Lets `memory` stand for `data`. With oneDNN 2 this clears what is padding, a pass over memory.
void set_data(dnnl::memory& memory, std::byte* data, const dnnl::stream& stream);

}  // namespace mox::onednn
