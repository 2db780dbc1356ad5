// Where an operand's elements are, seen from the flat order in which a kernel walks its output.
//
// The output is walked in the order of its memory, whatever its layout: [begin, begin + count) of its
// physical elements is one contiguous piece. An operand of the same shape and layout is the same piece of its
// own memory; a broadcast operand is plain and is read with strides, of which 0 repeats an element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/graph/layout.h"

namespace mox::elementwise {

class Access {
 public:
  enum class Kind {
    kDirect,    // element i of the output's memory goes with element i of the operand's
    kScalar,    // one element for all
    kPeriodic,  // element i goes with element i modulo `period`: broadcast over outer dimensions only
    kGathered,  // anything else
  };

  Access() = default;
  // An operand that has the output's shape and layout.
  static Access direct();
  // A plain operand of `shape`, which broadcasts to the output's. The output's layout is plain or blocked;
  // with padding only operands of one element can be broadcast.
  static Access broadcast(const Shape& shape, const Shape& output_shape, const Layout& output_layout);

  Kind kind() const { return kind_; }
  int64_t period() const { return period_; }

  // Copies the operand's elements (of `element_bytes` each) for output elements [begin, begin + count) to
  // `to`. Not for kDirect.
  void gather(const std::byte* from, size_t element_bytes, int64_t begin, int64_t count, std::byte* to) const;

 private:
  template <typename Element>
  void gather_elements(const Element* from, int64_t begin, int64_t count, Element* to) const;

  Kind kind_ = Kind::kDirect;
  int64_t period_ = 0;
  std::vector<int64_t> extents_, strides_;  // of the walk, outermost first, merged where possible
};

// The same order of elements for another dtype.
Layout with_dtype(const Layout& layout, const TensorType& type);

}  // namespace mox::elementwise
