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
#include <tuple>
#include <utility>
#include <vector>

#include "ops/processor/internal/recently_made.h"
#include "runtime/base/team.h"
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

// Whether they are equal in all; oneDNN's own comparison leaves out strides of extents of one, which may
// decide what a primitive is.
bool is_same(const dnnl::memory::desc& a, const dnnl::memory::desc& b);
template <typename T>
bool is_same(const T& a, const T& b) {
  return a == b;
}

struct SameArguments {
  template <typename... Arguments>
  bool operator()(const std::tuple<Arguments...>& a, const std::tuple<Arguments...>& b) const {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return (is_same(std::get<i>(a), std::get<i>(b)) && ...);
    }
    (std::index_sequence_for<Arguments...>());
  }
};

// One description for all operations that are alike, as those of a deep network: oneDNN chooses a kernel anew
// for each, in up to a millisecond, and keeps up to tens of kilobytes. It chooses by the number of
// threads, too.
template <typename Description, typename Make, typename... Arguments>
Description described_once(const Make& make, const Arguments&... arguments) {
  constexpr size_t kMost = 64;
  using Key = std::tuple<int, Arguments...>;
  engine();  // there for as long as the descriptions
  static RecentlyMade<Key, Description, SameArguments> known(kMost);
  return known.of(Key(entered_threads(), arguments...), [&] { return make(arguments...); });
}

// The description of a primitive on `engine()` with `attributes_with_scratchpad()`: describe<dnnl::matmul>(a,
// b, y). The arguments are those of its operation, in oneDNN's order.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
  using Description = typename Primitive::primitive_desc;
  return described_once<Description>(
      [](const Arguments&... given) {
#if DNNL_VERSION_MAJOR >= 3
        return Description(engine(), given..., attributes_with_scratchpad());
#else
        return Description(typename Primitive::desc(given...), attributes_with_scratchpad(), engine());
#endif
      },
      arguments...);
}

// The same of a gradient; `forward` is the description of the operation that it is the gradient of.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc describe_gradient(const Forward& forward, const Arguments&... arguments) {
  using Description = typename Primitive::primitive_desc;
  return described_once<Description>(
      [](const Forward& of, const Arguments&... given) {
#if DNNL_VERSION_MAJOR >= 3
        return Description(engine(), given..., of, attributes_with_scratchpad());
#else
        return Description(typename Primitive::desc(given...), attributes_with_scratchpad(), engine(), of);
#endif
      },
      forward, arguments...);
}

// Of the primitive that moves a value from one layout into another.
inline dnnl::reorder::primitive_desc describe_reorder(const dnnl::memory::desc& from,
                                                      const dnnl::memory::desc& to) {
  using Description = dnnl::reorder::primitive_desc;
  return described_once<Description>(
      [](const dnnl::memory::desc& source, const dnnl::memory::desc& target) {
        return Description(engine(), source, engine(), target, attributes_with_scratchpad());
      },
      from, to);
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
