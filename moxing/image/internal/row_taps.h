// The horizontal weights in the order in which the kernels load them (TapsView says which that is).
#pragma once

#include <cstdint>

#include "moxing/image/internal/aligned_buffer.h"
#include "moxing/image/internal/resample_axis.h"
#include "moxing/image/internal/row_kernels.h"

namespace mox::image::internal {

class RowTaps {
 public:
  // `flip` mirrors the outputs. Returns the kernels that read what has been made: those for AVX-512 if they
  // may be taken and the columns of 16 outputs never span more than two vectors, as they do up to a reduction
  // by more than three.
  const RowKernels& prepare(const Axis& axis, bool flip, bool avx512);

  // Until the next `prepare`.
  const TapsView& view() const { return view_; }

 private:
  bool prepare_avx512(const Axis& axis, bool flip);
  void prepare_avx2(const Axis& axis, bool flip);

  TapsView view_{};
  AlignedBuffer<int32_t> starts_;
  AlignedBuffer<int16_t> weights_, places_;
};

}  // namespace mox::image::internal
